// Two WebSocket libraries, event streams and long polls by net/http, on one port.
package main

import (
	"encoding/json"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"github.com/lxzan/gws"
)

// writeWait is how long a client may take nothing before it is given up.
const writeWait = 10 * time.Second

var (
	clients = hub{channels: map[string]map[subscriber]struct{}{}}
	// Messages of at least so many bytes are compressed; 0 where none are.
	compressionFrom, _ = strconv.Atoi(os.Getenv("COMPRESSION_FROM"))
	gorillas           = websocket.Upgrader{
		CheckOrigin:       func(*http.Request) bool { return true },
		EnableCompression: compressionFrom > 0,
	}
	gwses = gws.NewUpgrader(gwsHandler{}, &gws.ServerOption{
		PermessageDeflate: gws.PermessageDeflate{Enabled: compressionFrom > 0, Threshold: compressionFrom},
	})
)

// target is the channel that a client publishes to.
func target(r *http.Request) string {
	query := r.URL.Query()
	if query.Has("publish") {
		return query.Get("publish")
	}
	return query.Get("channel")
}

func gorilla(w http.ResponseWriter, r *http.Request) {
	var conn *websocket.Conn
	channels, publish := r.URL.Query()["channel"], target(r)
	client := newQueue()
	_, err := clients.join(channels, func() (s subscriber, err error) {
		conn, err = gorillas.Upgrade(w, r, nil)
		return client, err
	})
	if err != nil {
		return
	}
	go gorillaWrite(conn, client)
	// The handler ends, so that what net/http holds of the request can be collected.
	go func() {
		defer conn.Close()
		defer clients.leave(channels, client)
		defer close(client.gone)
		for {
			_, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			clients.publish(publish, data)
		}
	}()
}

// gorillaWrite is the only one who writes to the connection. When it cannot, it closes it and so ends the reader.
func gorillaWrite(conn *websocket.Conn, client *queue) {
	defer conn.Close()
	for {
		select {
		case p := <-client.send:
			_ = conn.SetWriteDeadline(time.Now().Add(writeWait))
			conn.EnableWriteCompression(p.size >= compressionFrom)
			if conn.WritePreparedMessage(p.prepared()) != nil {
				return
			}
		case <-client.gone:
			return
		}
	}
}

func gorillaEcho(w http.ResponseWriter, r *http.Request) {
	conn, err := gorillas.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	go func() {
		defer conn.Close()
		for {
			kind, data, err := conn.ReadMessage()
			if err != nil {
				return
			}
			conn.EnableWriteCompression(len(data) >= compressionFrom)
			if conn.WriteMessage(kind, data) != nil {
				return
			}
		}
	}()
}

// gwsHandler is told of what a connection receives; gws queues what it sends by itself.
type gwsHandler struct{ gws.BuiltinEventHandler }

func (gwsHandler) OnMessage(conn *gws.Conn, message *gws.Message) {
	defer message.Close()
	if publish, ok := conn.Session().Load("publish"); ok {
		clients.publish(publish.(string), append([]byte(nil), message.Bytes()...))
	} else {
		_ = conn.WriteMessage(message.Opcode, message.Bytes())
	}
}

type gwsClient struct{ *gws.Conn }

func (c gwsClient) deliver(p *publication) { _ = p.broadcaster.Broadcast(c.Conn) }

func gwsChannels(w http.ResponseWriter, r *http.Request) {
	var conn *gws.Conn
	channels := r.URL.Query()["channel"]
	client, err := clients.join(channels, func() (s subscriber, err error) {
		conn, err = gwses.Upgrade(w, r)
		return gwsClient{conn}, err
	})
	if err != nil {
		return
	}
	conn.Session().Store("publish", target(r))
	// The handler ends, so that what it holds of the request can be collected.
	go func() {
		conn.ReadLoop()
		clients.leave(channels, client)
	}()
}

func gwsEcho(w http.ResponseWriter, r *http.Request) {
	if conn, err := gwses.Upgrade(w, r); err == nil {
		go conn.ReadLoop()
	}
}

func sse(w http.ResponseWriter, r *http.Request) {
	channels := r.URL.Query()["channel"]
	client, flusher := newQueue(), http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = clients.join(channels, func() (subscriber, error) { return client, nil })
	defer clients.leave(channels, client)
	defer close(client.gone)
	event := []byte(":\n\n")
	for {
		_ = flusher.SetWriteDeadline(time.Now().Add(writeWait))
		if _, err := w.Write(event); err != nil || flusher.Flush() != nil {
			return
		}
		select {
		case p := <-client.send:
			event = p.event()
		case <-r.Context().Done():
			return
		}
	}
}

func poll(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	channels := query["channel"]
	wait, _ := strconv.Atoi(query.Get("wait"))
	after, err := strconv.ParseUint(query.Get("after"), 10, 64)
	if err != nil {
		// Who does not say what it has seen asks only where the end is.
		after, wait = math.MaxUint64, 0
	}
	var reply []byte
	if wait > 0 {
		reply = held(r, channels, after, time.Duration(wait)*time.Second)
	}
	if reply == nil {
		reply = clients.missed(channels, after, nil)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(reply)))
	_, _ = w.Write(reply)
}

// held is the reply as soon as there is something to say, or nil after that time, or when the client is gone.
func held(r *http.Request, channels []string, after uint64, wait time.Duration) []byte {
	client := make(heldPoll, 1)
	if reply := clients.missed(channels, after, client); reply != nil {
		return reply
	}
	defer clients.leave(channels, client)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case p := <-client:
		return p.reply()
	case <-timer.C:
	case <-r.Context().Done():
	}
	return nil
}

func publish(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	clients.publish(r.URL.Query().Get("channel"), data)
	w.WriteHeader(http.StatusNoContent)
}

func echo(w http.ResponseWriter, r *http.Request) {
	if data, err := io.ReadAll(r.Body); err == nil {
		_, _ = w.Write(data)
	}
}

func main() {
	http.HandleFunc("GET /ws", gorilla)
	http.HandleFunc("GET /ws/echo", gorillaEcho)
	http.HandleFunc("GET /ws-gws", gwsChannels)
	http.HandleFunc("GET /ws-gws/echo", gwsEcho)
	http.HandleFunc("GET /sse", sse)
	http.HandleFunc("GET /poll", poll)
	http.HandleFunc("POST /publish", publish)
	http.HandleFunc("POST /echo", echo)
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]string{"listening": listener.Addr().String()})
	if certificate := os.Getenv("TLS_CERTIFICATE"); certificate != "" {
		log.Fatal(http.ServeTLS(listener, nil, certificate, os.Getenv("TLS_KEY")))
	}
	log.Fatal(http.Serve(listener, nil))
}
