module go-bare

go 1.24

require (
	github.com/gorilla/websocket v1.5.3
	github.com/lxzan/gws v1.8.9
)

require (
	github.com/dolthub/maphash v0.1.0 // indirect
	github.com/klauspost/compress v1.17.9 // indirect
)
