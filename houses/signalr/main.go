// The auction house on SignalR: a hub method for each call, and "change" as a method of the client.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	kitlog "github.com/go-kit/log"
	"github.com/philippseith/signalr"
)

const userKey = "user"

type hub struct {
	signalr.Hub
	house *house
}

func (h *hub) Register(args json.RawMessage) any { return h.become(h.house.register(args)) }
func (h *hub) LogIn(args json.RawMessage) any    { return h.become(h.house.logIn(args)) }
func (h *hub) List(args json.RawMessage) any     { return answer(h.house.list(args)) }
func (h *hub) OwnBids(args json.RawMessage) any  { return answer(h.house.ownBids(h.user(), args)) }
func (h *hub) Add(args json.RawMessage) any      { return answer(h.house.add(h.user(), args)) }
func (h *hub) Remove(args json.RawMessage) any   { return answer(h.house.remove(h.user(), args)) }
func (h *hub) Bid(args json.RawMessage) any      { return answer(h.house.bid(h.user(), args)) }

func (h *hub) become(named *nameAnswer, err error) any {
	if err == nil {
		h.Items().Store(userKey, named.Name)
	}
	return answer(named, err)
}

func (h *hub) user() string {
	user, _ := h.Items().Load(userKey)
	name, _ := user.(string)
	return name
}

// answer makes a refusal an answer too: an error of a hub method is nothing but text.
func answer(result any, err error) any {
	if err != nil {
		return err
	}
	return result
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	var clients signalr.HubClients
	house := newHouse(func(c change) { clients.All().Send("change", c) })
	server, err := signalr.NewServer(ctx,
		signalr.HubFactory(func() signalr.HubInterface { return &hub{house: house} }),
		signalr.WithHubLifetimeManager(newOrdered),
		signalr.WithAlternateMethodName("LogIn", "log-in"),
		signalr.WithAlternateMethodName("OwnBids", "own-bids"),
		signalr.Logger(kitlog.NewLogfmtLogger(io.Discard), false),
	)
	if err != nil {
		log.Fatal(err)
	}
	clients = server.HubClients()
	router := http.NewServeMux()
	server.MapHTTP(signalr.WithHTTPServeMux(router), "/hub")

	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	web := &http.Server{Handler: router}
	go func() {
		<-ctx.Done()
		web.Close()
	}()
	fmt.Printf("{\"listening\":%q}\n", listener.Addr())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
