package main

import (
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

// historyMax is how many publications are kept for those who poll, whatever their channels.
const historyMax = 1000

// publication is one message, encoded at most once for each framing.
type publication struct {
	size        int
	number      uint64
	prepared    func() *websocket.PreparedMessage
	broadcaster *gws.Broadcaster
	event       func() []byte
	reply       func() []byte
}

func newPublication(data []byte) *publication {
	p := &publication{
		size: len(data),
		prepared: sync.OnceValue(func() *websocket.PreparedMessage {
			// A text message of known bytes can always be prepared.
			message, _ := websocket.NewPreparedMessage(websocket.TextMessage, data)
			return message
		}),
		broadcaster: gws.NewBroadcaster(gws.OpcodeText, data),
		event: sync.OnceValue(func() []byte {
			return append(append([]byte("data: "), data...), "\n\n"...)
		}),
	}
	p.reply = sync.OnceValue(func() []byte { return fmt.Appendf(nil, "[%d,%s]", p.number, data) })
	return p
}

type subscriber interface{ deliver(*publication) }

// hub knows who gets what. Its lock is held while a publication is handed out, so all get the same order.
type hub struct {
	mutex    sync.Mutex
	channels map[string]map[subscriber]struct{}
	// count is the number of the newest publication; the one numbered n is at (n-1) % historyMax.
	count   uint64
	history [historyMax]kept
}

type kept struct {
	channel string
	data    []byte
}

// join holds publications back while open answers the client, so none is missed from then on.
func (h *hub) join(names []string, open func() (subscriber, error)) (subscriber, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	s, err := open()
	if err != nil {
		return nil, err
	}
	h.add(names, s)
	return s, nil
}

func (h *hub) add(names []string, s subscriber) {
	for _, name := range names {
		if h.channels[name] == nil {
			h.channels[name] = map[subscriber]struct{}{}
		}
		h.channels[name][s] = struct{}{}
	}
}

func (h *hub) leave(names []string, s subscriber) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, name := range names {
		delete(h.channels[name], s)
	}
}

func (h *hub) publish(name string, data []byte) {
	p := newPublication(data)
	defer p.broadcaster.Close()
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.history[h.count%historyMax] = kept{name, data}
	h.count++
	p.number = h.count
	for s := range h.channels[name] {
		s.deliver(p)
	}
}

// missed is the reply to who has seen everything up to after. If it says nothing, it is nil, and s joins instead.
func (h *hub) missed(names []string, after uint64, s subscriber) []byte {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	reply := strconv.AppendUint([]byte("["), h.count, 10)
	head := len(reply)
	for n := max(after, h.count-min(h.count, historyMax)); n < h.count; n++ {
		if k := h.history[n%historyMax]; slices.Contains(names, k.channel) {
			reply = append(append(reply, ','), k.data...)
		}
	}
	if s != nil && len(reply) == head {
		h.add(names, s)
		return nil
	}
	return append(reply, ']')
}

// queue is what a client has not been sent yet. Who publishes waits while it is full, until the client is gone.
type queue struct {
	send chan *publication
	gone chan struct{}
}

func newQueue() *queue {
	return &queue{make(chan *publication, 256), make(chan struct{})}
}

func (q *queue) deliver(p *publication) {
	select {
	case q.send <- p:
	case <-q.gone:
	}
}

// heldPoll is answered with the first publication that comes, and has no use for others.
type heldPoll chan *publication

func (c heldPoll) deliver(p *publication) {
	select {
	case c <- p:
	default:
	}
}
