package main

import (
	"sync"

	"github.com/philippseith/signalr"
)

// queueMax is how many changes may wait for a client, about 2 KiB each; who reads more slowly is disconnected.
const queueMax = 1024

// ordered sends each client what is told to all in the order in which it was told. The framework's own manager starts
// a goroutine for each message to each client, and they overtake each other.
type ordered struct {
	signalr.HubLifetimeManager // groups and single clients, which no hub here uses

	mu      sync.Mutex
	clients map[string]client
}

type client struct {
	signalr.HubConnection
	queue chan message
}

type message struct {
	target string
	args   []any
}

func newOrdered(signalr.Server) (signalr.HubLifetimeManager, error) {
	return &ordered{clients: map[string]client{}}, nil
}

func (o *ordered) OnConnected(connection signalr.HubConnection) {
	c := client{connection, make(chan message, queueMax)}
	o.mu.Lock()
	o.clients[c.ConnectionID()] = c
	o.mu.Unlock()
	go c.send()
}

func (o *ordered) OnDisconnected(connection signalr.HubConnection) {
	o.mu.Lock()
	delete(o.clients, connection.ConnectionID())
	o.mu.Unlock()
}

func (o *ordered) InvokeAll(target string, args []any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.clients {
		select {
		case c.queue <- message{target, args}:
		default:
			c.Abort()
		}
	}
}

func (c client) send() {
	for {
		select {
		case m := <-c.queue:
			_ = c.SendInvocation("", m.target, m.args) // what fails ends the connection
		case <-c.Context().Done():
			return
		}
	}
}
