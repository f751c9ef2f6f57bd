package main

import (
	"cmp"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	maxCents = 1e12
	minRun   = time.Second
	maxRun   = 90 * 24 * time.Hour

	// What OWASP's Password Storage Cheat Sheet recommends for PBKDF2 with SHA-512.
	hashRounds = 210_000
	hashBytes  = sha512.Size
)

var accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{1,23}$`)

type leading struct {
	Bidder      string `json:"bidder"`
	AmountCents int64  `json:"amount_cents"`
}

type item struct {
	ID           int64    `json:"id"`
	Name         string   `json:"name"`
	Description  string   `json:"description"`
	Owner        string   `json:"owner"`
	MinimumCents int64    `json:"minimum_cents"`
	ExpiresMs    int64    `json:"expires_ms"`
	Leading      *leading `json:"leading"`
	Version      int64    `json:"version"`
}

type change struct {
	Kind string `json:"kind"`
	Item item   `json:"item"`
}

type ownBid struct {
	ID          int64 `json:"id"`
	AmountCents int64 `json:"amount_cents"`
}

type nameAnswer struct {
	Name string `json:"name"`
}

type itemAnswer struct {
	Item item `json:"item"`
}

type listAnswer struct {
	Version int64  `json:"version"`
	Items   []item `json:"items"`
}

type bidsAnswer struct {
	Bids []ownBid `json:"bids"`
}

// refusal is what the house says instead of an answer.
type refusal struct {
	Code    string `json:"error"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

type outbid struct {
	refusal
	Leading    *leading `json:"leading"`
	LeastCents int64    `json:"least_cents"`
}

var (
	errNameTaken    = &refusal{"name-taken", "somebody has this name"}
	errWrongLogIn   = &refusal{"unauthorized", "there is no such name with this password"}
	errUnauthorized = &refusal{"unauthorized", "register or log in first"}
	errNotFound     = &refusal{"not-found", "there is no such item"}
	errForbidden    = &refusal{"forbidden", "the item is another's"}
	errExpired      = &refusal{"expired", "the auction is over"}
)

func badRequest(message string) error { return &refusal{"bad-request", message} }

type account struct {
	name, salt, hash string
}

type auction struct {
	item
	bids map[string]int64 // each bidder's highest
	end  *time.Timer
}

// house is the auction house. One lock makes its changes a sequence, in which they are told.
type house struct {
	tell func(change) // must not block

	mu       sync.Mutex
	accounts map[string]account // by name in small letters
	auctions map[int64]*auction
	lastID   int64
	version  int64
}

func newHouse(tell func(change)) *house {
	return &house{tell: tell, accounts: map[string]account{}, auctions: map[int64]*auction{}}
}

func (h *house) register(raw json.RawMessage) (*nameAnswer, error) {
	name, password, err := credentials(raw)
	if err != nil {
		return nil, err
	}
	if _, taken := h.account(name); taken {
		return nil, errNameTaken
	}
	salt := rand.Text()
	hash := hashed(password, salt) // takes long, so outside the lock
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.ToLower(name)
	if _, taken := h.accounts[key]; taken {
		return nil, errNameTaken
	}
	h.accounts[key] = account{name, salt, hash}
	return &nameAnswer{name}, nil
}

func (h *house) logIn(raw json.RawMessage) (*nameAnswer, error) {
	name, password, err := credentials(raw)
	if err != nil {
		return nil, err
	}
	known, _ := h.account(name)
	// Of an unknown name the time would tell, so something is hashed for it too.
	if !hmac.Equal([]byte(hashed(password, known.salt)), []byte(known.hash)) {
		return nil, errWrongLogIn
	}
	return &nameAnswer{known.name}, nil
}

func (h *house) list(raw json.RawMessage) (*listAnswer, error) {
	if _, err := members(raw); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	items := make([]item, 0, len(h.auctions))
	for _, a := range h.auctions {
		items = append(items, a.item)
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.ID, b.ID) })
	return &listAnswer{h.version, items}, nil
}

func (h *house) ownBids(user string, raw json.RawMessage) (*bidsAnswer, error) {
	if _, err := members(raw); err != nil {
		return nil, err
	}
	if user == "" {
		return nil, errUnauthorized
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bids := []ownBid{}
	for _, a := range h.auctions {
		if amount, ok := a.bids[user]; ok {
			bids = append(bids, ownBid{a.ID, amount})
		}
	}
	slices.SortFunc(bids, func(a, b ownBid) int { return cmp.Compare(a.ID, b.ID) })
	return &bidsAnswer{bids}, nil
}

func (h *house) add(user string, raw json.RawMessage) (*itemAnswer, error) {
	m, err := members(raw, "name", "description", "minimum_cents", "expires_ms")
	if err != nil {
		return nil, err
	}
	name, err := m.text("name", 1, 100)
	if err != nil {
		return nil, err
	}
	description, err := m.text("description", 0, 1000)
	if err != nil {
		return nil, err
	}
	minimum, err := m.whole("minimum_cents", 1, maxCents)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	expires, err := m.whole("expires_ms", now.Add(minRun).UnixMilli(), now.Add(maxRun).UnixMilli())
	if err != nil {
		return nil, err
	}
	if user == "" {
		return nil, errUnauthorized
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastID++
	a := &auction{
		item: item{
			ID: h.lastID, Name: name, Description: description, Owner: user,
			MinimumCents: minimum, ExpiresMs: expires,
		},
		bids: map[string]int64{},
	}
	h.auctions[a.ID] = a
	a.end = time.AfterFunc(time.Until(time.UnixMilli(expires)), func() { h.end(a) })
	h.changed("added", a)
	return &itemAnswer{a.item}, nil
}

func (h *house) remove(user string, raw json.RawMessage) (*itemAnswer, error) {
	m, err := members(raw, "id")
	if err != nil {
		return nil, err
	}
	id, err := m.id()
	if err != nil {
		return nil, err
	}
	if user == "" {
		return nil, errUnauthorized
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.auctions[id]
	switch {
	case !ok:
		return nil, errNotFound
	case a.Owner != user:
		return nil, errForbidden
	}
	a.end.Stop()
	delete(h.auctions, id)
	h.changed("removed", a)
	return &itemAnswer{a.item}, nil
}

func (h *house) bid(user string, raw json.RawMessage) (*itemAnswer, error) {
	m, err := members(raw, "id", "amount_cents")
	if err != nil {
		return nil, err
	}
	id, err := m.id()
	if err != nil {
		return nil, err
	}
	amount, err := m.whole("amount_cents", 1, maxCents)
	if err != nil {
		return nil, err
	}
	if user == "" {
		return nil, errUnauthorized
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a, ok := h.auctions[id]
	switch {
	case !ok:
		return nil, errNotFound
	case time.Now().UnixMilli() >= a.ExpiresMs:
		return nil, errExpired
	}
	least := a.MinimumCents
	if a.Leading != nil {
		least = a.Leading.AmountCents + 1
	}
	if amount < least {
		return nil, &outbid{refusal{"outbid", fmt.Sprintf("bid %d cents or more", least)}, a.Leading, least}
	}
	a.Leading = &leading{user, amount}
	a.bids[user] = amount
	h.changed("bid", a)
	return &itemAnswer{a.item}, nil
}

func (h *house) end(a *auction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.auctions[a.ID] == a { // or it was removed while this waited for the lock
		h.changed("ended", a)
	}
}

// changed counts a change and tells it; the lock is held.
func (h *house) changed(kind string, a *auction) {
	h.version++
	a.Version = h.version
	h.tell(change{kind, a.item})
}

func (h *house) account(name string) (account, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.accounts[strings.ToLower(name)]
	return known, ok
}

func hashed(password, salt string) string {
	hash, err := pbkdf2.Key(sha512.New, password, []byte(salt), hashRounds, hashBytes)
	if err != nil {
		panic(err) // only where FIPS mode forbids these parameters
	}
	return string(hash)
}

func credentials(raw json.RawMessage) (name, password string, err error) {
	m, err := members(raw, "name", "password")
	if err != nil {
		return "", "", err
	}
	name, _ = m["name"].(string)
	if !accountName.MatchString(name) {
		return "", "", badRequest("a name has 2 to 24 of A-Z a-z 0-9 - _, the first a letter or digit")
	}
	password, err = m.text("password", 8, 128)
	return name, password, err
}

// arguments are the members of a call's argument. Structs would not do: encoding/json takes a member that is missing
// for an empty one, and NAME for name.
type arguments map[string]any

func members(raw json.RawMessage, names ...string) (arguments, error) {
	var m arguments
	if json.Unmarshal(raw, &m) != nil || m == nil || len(m) != len(names) {
		return nil, badRequest(fmt.Sprintf("the argument is an object with these members alone: %v", names))
	}
	for _, name := range names {
		if _, ok := m[name]; !ok {
			return nil, badRequest(name + " is missing")
		}
	}
	return m, nil
}

func (m arguments) text(name string, shortest, longest int) (string, error) {
	text, ok := m[name].(string)
	if length := utf8.RuneCountInString(text); !ok || length < shortest || length > longest {
		return "", badRequest(fmt.Sprintf("%s is text of %d to %d characters", name, shortest, longest))
	}
	return text, nil
}

func (m arguments) whole(name string, least, most int64) (int64, error) {
	number, ok := m[name].(float64)
	if !ok || number != math.Trunc(number) || number < float64(least) || number > float64(most) {
		return 0, badRequest(fmt.Sprintf("%s is a whole number from %d to %d", name, least, most))
	}
	return int64(number), nil
}

func (m arguments) id() (int64, error) {
	const maxExact = 1<<53 - 1 // beyond it a JSON number may stand for several
	return m.whole("id", 1, maxExact)
}
