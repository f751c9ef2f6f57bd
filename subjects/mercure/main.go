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
	"path/filepath"
	"syscall"

	"github.com/dunglas/mercure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	options := []mercure.Option{
		mercure.WithAnonymous(),
		// The route for publications exists only with a key; the load holds a token signed with it.
		mercure.WithPublisherJWT([]byte("!ChangeThisMercureHubJWTSecretKey!"), "HS256"),
		mercure.WithLogger(logger),
	}
	if os.Getenv("RECOVERY_MS") != "" {
		// A history, in a file that outlives the process: that of the port, so that whoever is started again has it. Those
		// of earlier hubs go.
		path := "history-" + os.Getenv("PORT") + ".db"
		files, _ := filepath.Glob("history-*.db")
		for _, file := range files {
			if file != path {
				os.Remove(file)
			}
		}
		subscribers := mercure.NewSubscriberList(mercure.DefaultSubscriberListCacheSize)
		transport, err := mercure.NewBoltTransport(subscribers, logger, path, "", 0, 0)
		if err != nil {
			log.Fatal(err)
		}
		defer transport.Close(context.Background())
		options = append(options, mercure.WithTransport(transport))
	}
	hub, err := mercure.NewHub(ctx, options...)
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
