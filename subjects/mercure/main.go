// A Mercure hub that anyone may subscribe to.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/dunglas/mercure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	hub, err := mercure.NewHub(
		ctx,
		mercure.WithAnonymous(),
		// The route for publications exists only with a key; the load holds a token signed with it.
		mercure.WithPublisherJWT([]byte("!ChangeThisMercureHubJWTSecretKey!"), "HS256"),
		mercure.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
	)
	if err != nil {
		log.Fatal(err)
	}

	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("HOST"), os.Getenv("PORT")))
	if err != nil {
		log.Fatal(err)
	}
	server := &http.Server{Handler: hub}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	fmt.Printf("{\"listening\":%q}\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}
