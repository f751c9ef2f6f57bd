import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;

import com.fasterxml.jackson.databind.JsonNode;

/** The auction house: no transport and no framework. Its lock makes its changes a sequence. */
final class House {
    record Leading(String bidder, long amountCents) {}

    record Item(
            long id, String name, String description, String owner,
            long minimumCents, long expiresMs, Leading leading, long version) {
        Item with(long version) {
            return new Item(id, name, description, owner, minimumCents, expiresMs, leading, version);
        }

        Item with(Leading leading) {
            return new Item(id, name, description, owner, minimumCents, expiresMs, leading, version);
        }
    }

    record Change(String kind, Item item) {}

    record OwnBid(long id, long amountCents) {}

    /** Whose a connection is. */
    static final class Session {
        private volatile String user;

        private String user() {
            if (user == null) {
                throw new Refusal("unauthorized", "register or log in first");
            }
            return user;
        }
    }

    static final class Refusal extends RuntimeException {
        private final Map<String, Object> answer = new LinkedHashMap<>(); // unlike Map.of it may hold null: no leading bid

        Refusal(String code, String message) {
            super(message, null, false, false);
            answer.put("error", code);
            answer.put("message", message);
        }

        private Refusal with(String name, Object value) {
            answer.put(name, value);
            return this;
        }

        Map<String, Object> answer() {
            return answer;
        }
    }

    private record Account(String name, byte[] salt, byte[] hash) {}

    private static final class Lot {
        Item item;
        boolean ended;
        final Map<String, Long> bids = new HashMap<>(); // each bidder's highest
    }

    // What OWASP's Password Storage Cheat Sheet recommends for PBKDF2 with SHA-512.
    private static final int HASH_ROUNDS = 210_000;
    private static final int HASH_BITS = 512;
    private static final long MAX_CENTS = 1_000_000_000_000L;
    private static final long MIN_RUN_MS = Duration.ofSeconds(1).toMillis();
    private static final long MAX_RUN_MS = Duration.ofDays(90).toMillis();
    private static final Pattern ACCOUNT_NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_-]{1,23}");
    private static final SecureRandom RANDOM = new SecureRandom();

    private final Consumer<Change> tell;
    private final Map<String, Account> accounts = new HashMap<>(); // by name in small letters
    private final Map<Long, Lot> lots = new TreeMap<>();
    private long lastId;
    private long version;

    /** `tell` is given the changes in their order, and must not block. */
    House(Consumer<Change> tell) {
        this.tell = tell;
    }

    /** The answer, which may be a refusal. */
    Object call(Session session, String name, JsonNode args) {
        try {
            return switch (name) {
                case "register" -> register(session, only(args, "name", "password"));
                case "log-in" -> logIn(session, only(args, "name", "password"));
                case "list" -> list(only(args));
                case "own-bids" -> ownBids(session, only(args));
                case "add" -> add(session, only(args, "name", "description", "minimum_cents", "expires_ms"));
                case "remove" -> remove(session, only(args, "id"));
                case "bid" -> bid(session, only(args, "id", "amount_cents"));
                default -> throw bad("there is no such call");
            };
        } catch (Refusal refusal) {
            return refusal.answer();
        }
    }

    /** Ends what is over; to be called several times a second. */
    synchronized void endDue() {
        var now = System.currentTimeMillis();
        for (var lot : lots.values()) {
            if (!lot.ended && lot.item.expiresMs() <= now) {
                lot.ended = true;
                changed("ended", lot, lot.item);
            }
        }
    }

    private Object register(Session session, JsonNode args) {
        var name = accountName(args);
        var password = text(args, "password", 8, 128);
        if (account(name) != null) {
            throw nameTaken();
        }
        var salt = newSalt();
        var made = new Account(name, salt, hashed(password, salt)); // takes long, so outside the lock
        synchronized (this) {
            if (accounts.putIfAbsent(key(name), made) != null) {
                throw nameTaken();
            }
        }
        session.user = name;
        return Map.of("name", name);
    }

    private Object logIn(Session session, JsonNode args) {
        var known = account(accountName(args));
        // Of an unknown name the time would tell, so something is hashed for it too.
        var hash = hashed(text(args, "password", 8, 128), known == null ? newSalt() : known.salt());
        if (known == null || !MessageDigest.isEqual(hash, known.hash())) {
            throw new Refusal("unauthorized", "there is no such name with this password");
        }
        session.user = known.name();
        return Map.of("name", known.name());
    }

    private synchronized Object list(JsonNode args) {
        return Map.of("version", version, "items", lots.values().stream().map(lot -> lot.item).toList());
    }

    private Object ownBids(Session session, JsonNode args) {
        var user = session.user();
        var bids = new ArrayList<OwnBid>();
        synchronized (this) {
            lots.forEach((id, lot) -> {
                if (lot.bids.containsKey(user)) {
                    bids.add(new OwnBid(id, lot.bids.get(user)));
                }
            });
        }
        return Map.of("bids", bids);
    }

    private Object add(Session session, JsonNode args) {
        var name = text(args, "name", 1, 100);
        var description = text(args, "description", 0, 1000);
        var minimum = whole(args, "minimum_cents", 1, MAX_CENTS);
        var now = System.currentTimeMillis();
        var expires = whole(args, "expires_ms", now + MIN_RUN_MS, now + MAX_RUN_MS);
        var user = session.user();
        synchronized (this) {
            var lot = new Lot();
            lots.put(++lastId, lot);
            return changed("added", lot, new Item(lastId, name, description, user, minimum, expires, null, 0));
        }
    }

    private Object remove(Session session, JsonNode args) {
        var id = id(args);
        var user = session.user();
        synchronized (this) {
            var lot = found(id);
            if (!lot.item.owner().equals(user)) {
                throw new Refusal("forbidden", "the item is another's");
            }
            lots.remove(id);
            return changed("removed", lot, lot.item);
        }
    }

    private Object bid(Session session, JsonNode args) {
        var id = id(args);
        var amount = whole(args, "amount_cents", 1, MAX_CENTS);
        var user = session.user();
        synchronized (this) {
            var lot = found(id);
            if (lot.item.expiresMs() <= System.currentTimeMillis()) {
                throw new Refusal("expired", "the auction is over");
            }
            var leading = lot.item.leading();
            var least = leading == null ? lot.item.minimumCents() : leading.amountCents() + 1;
            if (amount < least) {
                throw new Refusal("outbid", "bid " + least + " cents or more")
                        .with("leading", leading)
                        .with("least_cents", least);
            }
            lot.bids.put(user, amount);
            return changed("bid", lot, lot.item.with(new Leading(user, amount)));
        }
    }

    private synchronized Account account(String name) {
        return accounts.get(key(name));
    }

    private Lot found(long id) {
        var lot = lots.get(id);
        if (lot == null) {
            throw new Refusal("not-found", "there is no such item");
        }
        return lot;
    }

    /** Counts a change and tells it; the lock is held. */
    private Object changed(String kind, Lot lot, Item item) {
        lot.item = item.with(++version);
        tell.accept(new Change(kind, lot.item));
        return Map.of("item", lot.item);
    }

    /** The arguments, if they are an object with these members and no others. */
    private static JsonNode only(JsonNode args, String... names) {
        var wanted = Set.of(names);
        if (!args.isObject() || args.size() != wanted.size() || !wanted.stream().allMatch(args::has)) {
            throw bad("the argument is an object with these members alone: " + List.of(names));
        }
        return args;
    }

    private static String text(JsonNode args, String name, int shortest, int longest) {
        var text = args.get(name).textValue(); // null unless it is text
        var length = text == null ? -1 : text.codePointCount(0, text.length());
        if (length < shortest || length > longest) {
            throw bad("%s is text of %d to %d characters".formatted(name, shortest, longest));
        }
        return text;
    }

    private static long whole(JsonNode args, String name, long least, long most) {
        var number = args.get(name);
        if (!number.isIntegralNumber() || !number.canConvertToLong()
                || number.longValue() < least || number.longValue() > most) {
            throw bad("%s is a whole number from %d to %d".formatted(name, least, most));
        }
        return number.longValue();
    }

    private static long id(JsonNode args) {
        return whole(args, "id", 1, Long.MAX_VALUE);
    }

    private static String accountName(JsonNode args) {
        var name = args.get("name").textValue();
        if (name == null || !ACCOUNT_NAME.matcher(name).matches()) {
            throw bad("a name has 2 to 24 of A-Z a-z 0-9 - _, the first a letter or digit");
        }
        return name;
    }

    private static Refusal bad(String message) {
        return new Refusal("bad-request", message);
    }

    private static Refusal nameTaken() {
        return new Refusal("name-taken", "somebody has this name");
    }

    private static String key(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private static byte[] newSalt() {
        var salt = new byte[16];
        RANDOM.nextBytes(salt);
        return salt;
    }

    private static byte[] hashed(String password, byte[] salt) {
        try {
            var factory = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA512");
            var spec = new PBEKeySpec(password.toCharArray(), salt, HASH_ROUNDS, HASH_BITS);
            return factory.generateSecret(spec).getEncoded();
        } catch (GeneralSecurityException impossible) {
            throw new AssertionError("the JDK has this algorithm", impossible);
        }
    }
}
