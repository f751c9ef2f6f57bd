// A SignalR hub whose groups are the channels.
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
	"time"

	kitlog "github.com/go-kit/log"
	"github.com/philippseith/signalr"
)

type channels struct{ signalr.Hub }

func (h *channels) Join(channel string) {
	h.Groups().AddToGroup(channel, h.ConnectionID())
}

func (h *channels) Publish(channel string, data json.RawMessage) {
	h.Clients().Group(channel).Send("msg", data)
}

func (h *channels) Echo(data json.RawMessage) {
	h.Clients().Caller().Send("echo", data)
}

// A page of another origin may ask; what it wants to post its browser asks about first.
func crossOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		if r.Method != http.MethodOptions {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
		w.Header().Set("Access-Control-Max-Age", "7200")
		w.WriteHeader(http.StatusNoContent)
	})
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	options := []func(signalr.Party) error{
		signalr.SimpleHubFactory(&channels{}),
		signalr.Logger(kitlog.NewLogfmtLogger(io.Discard), false),
		// The default of 1,000 refuses the rest of 5,000 clients that come at once.
		signalr.MaxNegotiationConnections(10_000),
		// The default of 30 s would end clients that only listen: the load pings when it is pinged, which the server
		// does while it has nothing else to say.
		signalr.TimeoutInterval(time.Hour),
	}
	isCrossOrigin := os.Getenv("CROSS_ORIGIN") != ""
	if isCrossOrigin {
		options = append(options, signalr.AllowOriginPatterns([]string{"*"}))
	}
	hub, err := signalr.NewServer(ctx, options...)
	if err != nil {
		log.Fatal(err)
	}
	router := http.NewServeMux()
	hub.MapHTTP(signalr.WithHTTPServeMux(router), "/hub")

	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: router}
	if isCrossOrigin {
		server.Handler = crossOrigin(router)
	}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Printf("{\"listening\":%q}\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
