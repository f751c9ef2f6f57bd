package main

import (
	"sync"

	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

// publication is one message, encoded at most once for each framing.
type publication struct {
	size        int
	prepared    func() *websocket.PreparedMessage
	broadcaster *gws.Broadcaster
	event       func() []byte
}

func newPublication(data []byte) *publication {
	return &publication{
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
}

type subscriber interface{ deliver(*publication) }

// hub knows who gets what. Its lock is held while a publication is handed out, so all get the same order.
type hub struct {
	mutex    sync.Mutex
	channels map[string]map[subscriber]struct{}
}

// join holds publications back while open answers the client, so none is missed from then on.
func (h *hub) join(names []string, open func() (subscriber, error)) (subscriber, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	s, err := open()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if h.channels[name] == nil {
			h.channels[name] = map[subscriber]struct{}{}
		}
		h.channels[name][s] = struct{}{}
	}
	return s, nil
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
	for s := range h.channels[name] {
		s.deliver(p)
	}
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
