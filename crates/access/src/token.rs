//! JSON Web Tokens (RFC 7519): who signed one, for whom, and for how long.

use crate::keys::Key;
use crate::ring_provider;
use crate::unique::Unique;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};

/// Longest token, bytes.
pub(crate) const MAX_TOKEN_BYTES: usize = 4096;
/// Keys that are tried for one token: a check of a signature takes up to 100 µs, and whoever sends a wrong token makes the
/// server do all of them.
const MAX_TRIED_KEYS: usize = 8;
/// Longest identity, bytes, as OpenID Connect has it (Core 1.0, section 2): names are kept for each connection, and told to
/// others.
const MAX_IDENTITY_BYTES: usize = 255;
/// The end of the year 9999. Anything later is not in seconds but in milliseconds, or means "for ever".
const MAX_TIME_S: f64 = 253_402_300_799.0;

macro_rules! token_errors {
    ($(#[doc = $doc:literal] $error:ident $name:literal: $text:literal,)+) => {
        /// Why a token is refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        pub enum TokenError {
            $(#[doc = $doc] #[error($text)] $error,)+
        }

        impl TokenError {
            /// All of them, in their order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$error),+];

            /// Its name in metrics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$error => $name,)+
                }
            }
        }
    };
}

token_errors! {
    /// The server takes none.
    NotTaken "not-taken":
        "this server accepts no tokens: its access file has no [token]",
    /// Not three parts, or not the JSON that they should be.
    Malformed "malformed":
        "the token is not a JSON Web Token",
    /// Its header asks for what is not supported (RFC 7515, section 4.1.11; RFC 7797, section 7).
    UnknownExtension "unknown-extension":
        "the token's header asks for an extension that this server does not support (crit, b64)",
    /// Its header says that it is for another purpose (RFC 8725, section 3.11).
    OtherType "other-type":
        "the token's type (typ) is for another purpose; JWT and at+jwt are accepted",
    /// Longer than any that is read.
    TooLong "too-long":
        "the token is longer than {MAX_TOKEN_BYTES} bytes",
    /// No key for it.
    UnknownKey "unknown-key":
        "the server has no key with the token's algorithm and key ID",
    /// More keys might have signed it than are tried.
    TooManyKeys "too-many-keys":
        "the token does not say which key signed it (kid): at most {MAX_TRIED_KEYS} are tried, and more would fit",
    /// Not signed by one of the keys.
    WrongSignature "wrong-signature":
        "the token's signature is wrong",
    /// Of somebody else.
    WrongIssuer "wrong-issuer":
        "the token is from another issuer",
    /// For somebody else.
    WrongAudience "wrong-audience":
        "the token is meant for another audience",
    /// It does not say who it is.
    NoIdentity "no-identity":
        "the token does not say whose it is, in at most {MAX_IDENTITY_BYTES} bytes, in the claim that the server reads for that",
    /// It would hold for ever.
    NoExpiry "no-expiry":
        "the token does not say when it expires (exp)",
    /// A time that is not valid.
    BadTime "bad-time":
        "a time in the token (exp, nbf, iat) is not a number of seconds since 1970, or is after the year 9999",
    /// Its lifetime is too long.
    LivesTooLong "lives-too-long":
        "the token's lifetime is longer than the access file allows (max_lifetime_s)",
    /// Its time is over.
    Expired "expired":
        "the token has expired",
    /// Its time has not come.
    NotYetValid "not-yet-valid":
        "the token is not valid yet",
    /// A ticket that was never given out, or was used, or is too old.
    BadTicket "bad-ticket":
        "the ticket is unknown, was used already, or is too old; get another one from POST /ticket",
    /// It would give the connection another identity.
    OtherIdentity "other-identity":
        "the token is somebody else's; open another connection for it",
}

/// What is asked of tokens.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Who must have made them, if only one may.
    pub issuer: Option<String>,
    /// Whom they must be for, if they must be for somebody.
    pub audience: Option<String>,
    /// The claim that says whose they are.
    pub identity: String,
    /// How far the issuer's clock may be off, seconds.
    pub leeway_s: u64,
    /// How long they may be good for, if that is limited, seconds.
    pub max_lifetime_s: Option<u64>,
    /// Keys of the file itself.
    pub keys: Vec<Key>,
    /// Those of the key set, if there is one and it was read.
    pub set: Vec<Key>,
}

/// What a token says, checked.
#[derive(Debug)]
pub struct Said {
    pub identity: String,
    /// Seconds since 1970, by the server's clock: the leeway is in it.
    pub expires_at: u64,
    pub claims: Map<String, Value>,
}

impl Tokens {
    /// Checks a token. [`TokenError::UnknownKey`] says that a newer key set may have its key. Adds to `checks` how many
    /// signatures were checked, or one where it did not come to that.
    pub fn check(&self, token: &str, now_s: u64, checks: &mut usize) -> Result<Said, TokenError> {
        *checks += 1;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::TooLong);
        }
        ring_provider::install();
        check_head(token)?;
        let head = decode_header(token).map_err(|_| TokenError::Malformed)?;
        let fits = |key: &&Key| key.fits(head.alg, head.kid.as_deref());
        let keys: Vec<&Key> = self.keys.iter().chain(&self.set).filter(fits).collect();
        match keys.len() {
            0 => return Err(TokenError::UnknownKey),
            1..=MAX_TRIED_KEYS => {}
            _ => return Err(TokenError::TooManyKeys),
        }
        // Times, issuer and audience are checked below, by the clock that is given.
        let mut signature = Validation::new(head.alg);
        signature.required_spec_claims.clear();
        (signature.validate_exp, signature.validate_aud) = (false, false);
        let mut error = TokenError::WrongSignature;
        for (nth, key) in keys.into_iter().enumerate() {
            *checks += usize::from(nth > 0);
            match decode(token, &key.key, &signature).map(|decoded| decoded.claims) {
                Ok(Unique(Value::Object(claims))) => return self.check_claims(claims, now_s),
                // Signed by this key, but what was signed is no set of claims.
                Ok(_) => error = TokenError::Malformed,
                Err(other) if *other.kind() == ErrorKind::InvalidSignature => {}
                Err(_) => error = TokenError::Malformed,
            }
        }
        Err(error)
    }

    fn check_claims(&self, claims: Map<String, Value>, now_s: u64) -> Result<Said, TokenError> {
        let is = |name: &str, expected: &Option<String>| {
            expected.as_ref().is_none_or(|expected| match claims.get(name) {
                Some(Value::String(one)) => one == expected,
                Some(Value::Array(several)) => several.iter().any(|one| one == expected.as_str()),
                _ => false,
            })
        };
        if !is("iss", &self.issuer) {
            return Err(TokenError::WrongIssuer);
        }
        if !is("aud", &self.audience) {
            return Err(TokenError::WrongAudience);
        }
        let [expires_at, not_before, issued_at] = ["exp", "nbf", "iat"].map(|name| time(claims.get(name)));
        let expires_at = expires_at?.ok_or(TokenError::NoExpiry)?;
        if expires_at.saturating_add(self.leeway_s) <= now_s {
            return Err(TokenError::Expired);
        }
        if not_before?.is_some_and(|at| at > now_s + self.leeway_s) {
            return Err(TokenError::NotYetValid);
        }
        // One that does not say since when it is good, or says that it is only in future, is good from now on at least.
        let since = issued_at?.unwrap_or(now_s).min(now_s);
        if self.max_lifetime_s.is_some_and(|max| expires_at.saturating_sub(since) > max.saturating_add(self.leeway_s)) {
            return Err(TokenError::LivesTooLong);
        }
        let identity = match claims.get(&self.identity) {
            Some(Value::String(text)) if (1..=MAX_IDENTITY_BYTES).contains(&text.len()) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(TokenError::NoIdentity),
        };
        Ok(Said { identity, expires_at: expires_at.saturating_add(self.leeway_s), claims })
    }
}

/// Refuses a header that cannot be honoured. Members that a reader may ignore are ignored.
fn check_head(token: &str) -> Result<(), TokenError> {
    let head = token.split('.').next().unwrap_or_default();
    let head = BASE64_URL_SAFE_NO_PAD.decode(head).map_err(|_| TokenError::Malformed)?;
    let Ok(Unique(Value::Object(head))) = serde_json::from_slice(&head) else { return Err(TokenError::Malformed) };
    if head.contains_key("crit") || head.get("b64").is_some_and(|is_usual| *is_usual != true) {
        return Err(TokenError::UnknownExtension);
    }
    let kind = head.get("typ").and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    if kind.ends_with("+jwt") && kind != "at+jwt" { Err(TokenError::OtherType) } else { Ok(()) }
}

/// A claim that is a time, in whole seconds since 1970 (RFC 7519 allows fractions); `None` if it is not there.
fn time(claim: Option<&Value>) -> Result<Option<u64>, TokenError> {
    let Some(claim) = claim else { return Ok(None) };
    let seconds = claim.as_f64().filter(|seconds| *seconds <= MAX_TIME_S).ok_or(TokenError::BadTime)?;
    // Before 1970 is 1970: as long ago as can be.
    Ok(Some(seconds as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Signer;
    use crate::keys::{Signing, read_set};
    use serde_json::json;

    const NOW: u64 = 1_800_000_000;
    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn tokens(keys: Vec<Key>) -> Tokens {
        let (issuer, audience) = (Some("https://id.example".to_owned()), Some("push".to_owned()));
        Tokens {
            issuer,
            audience,
            identity: "sub".to_owned(),
            leeway_s: 5,
            max_lifetime_s: None,
            keys,
            set: Vec::new(),
        }
    }

    fn by_secret() -> Tokens {
        tokens(vec![Key::read(None, Signing::HS256, SECRET.as_bytes()).unwrap()])
    }

    fn claims() -> Value {
        json!({ "iss": "https://id.example", "aud": ["other", "push"], "sub": "ada", "exp": NOW + 60 })
    }

    #[test]
    fn each_kind_of_signature_is_checked() {
        let rsa_pem = include_bytes!("../testdata/rsa.pem");
        for (signer, signing) in
            [(Signer::rsa(), Signing::RS256), (Signer::ecdsa(), Signing::ES256), (Signer::ed25519(), Signing::EdDSA)]
        {
            let set = json!({ "keys": [signer.entry("k1")] }).to_string();
            let mut by_set = tokens(Vec::new());
            by_set.set = read_set(set.as_bytes()).unwrap();
            assert_eq!(by_set.set[0].signing, signing);
            let token = signer.token_with(json!({ "kid": "k1" }), &claims());
            let said = by_set.check(&token, NOW, &mut 0).unwrap();
            assert_eq!((&*said.identity, said.expires_at), ("ada", NOW + 65), "{signing:?}");
            let other = signer.token_with(json!({ "kid": "k2" }), &claims());
            assert_eq!(by_set.check(&other, NOW, &mut 0).unwrap_err(), TokenError::UnknownKey);
            // Another key of the same kind, and a token that was altered.
            let stranger = match signing {
                Signing::ES256 => Signer::ecdsa().token_with(json!({ "kid": "k1" }), &claims()),
                _ => {
                    let (start, signature) = token.rsplit_once('.').unwrap();
                    let other = if signature.starts_with('A') { "B" } else { "A" };
                    format!("{start}.{other}{}", &signature[1..])
                }
            };
            assert_eq!(by_set.check(&stranger, NOW, &mut 0).unwrap_err(), TokenError::WrongSignature, "{signing:?}");
        }
        let by_pem = tokens(vec![Key::read(None, Signing::RS256, rsa_pem).unwrap()]);
        assert!(by_pem.check(&Signer::rsa().token(&claims()), NOW, &mut 0).is_ok());
    }

    /// The public key of RSA is no secret: a token that is signed with it as if it were one must not pass.
    #[test]
    fn a_token_cannot_choose_how_a_key_is_used() {
        let pem = include_str!("../testdata/rsa.pem");
        let by_rsa = tokens(vec![Key::read(None, Signing::RS256, pem.as_bytes()).unwrap()]);
        assert_eq!(
            by_rsa.check(&Signer::secret(pem).token(&claims()), NOW, &mut 0).unwrap_err(),
            TokenError::UnknownKey
        );
        for head in [json!({ "alg": "none" }), json!({ "alg": "HS384" }), json!({ "alg": "hs256" })] {
            let token = Signer::secret(SECRET).token_with(head.clone(), &claims());
            let error = by_secret().check(&token, NOW, &mut 0).unwrap_err();
            assert!(matches!(error, TokenError::UnknownKey | TokenError::Malformed), "{head} {error:?}");
        }
        let unsigned = format!("{}.", by_parts(&json!({ "alg": "HS256" }), &claims()));
        assert_eq!(by_secret().check(&unsigned, NOW, &mut 0).unwrap_err(), TokenError::WrongSignature);
    }

    /// Whoever sends wrong tokens is to pay for each check, and no token costs many.
    #[test]
    fn signatures_are_counted_and_keys_that_are_tried_bounded() {
        let secret = |n: usize| format!("{n:032}");
        let key = |n: usize, id: Option<String>| Key::read(id, Signing::HS256, secret(n).as_bytes()).unwrap();
        let of_many = |count: usize| tokens((0..count).map(|n| key(n, None)).collect());
        let by = |n: usize| Signer::secret(&secret(n)).token(&claims());
        for (token, error, expected) in [
            (by(0), None, 1),
            (by(7), None, 8),
            (by(8), Some(TokenError::WrongSignature), 8),
            ("no.token".to_owned(), Some(TokenError::Malformed), 1),
        ] {
            let mut checks = 0;
            assert_eq!(of_many(MAX_TRIED_KEYS).check(&token, NOW, &mut checks).err(), error);
            assert_eq!(checks, expected, "{token}");
        }
        let mut checks = 0;
        assert_eq!(of_many(MAX_TRIED_KEYS + 1).check(&by(0), NOW, &mut checks).unwrap_err(), TokenError::TooManyKeys);
        assert_eq!(checks, 1);
        let named = tokens((0..100).map(|n| key(n, Some(n.to_string()))).collect());
        let token = Signer::secret(&secret(70)).token_with(json!({ "kid": "70" }), &claims());
        assert!(named.check(&token, NOW, &mut 0).is_ok(), "it says which one");
    }

    fn by_parts(head: &Value, claims: &Value) -> String {
        [head, claims].map(|part| crate::fixtures::base64url(part.to_string().as_bytes())).join(".")
    }

    #[test]
    fn each_claim_is_checked() {
        let signer = Signer::secret(SECRET);
        let check = |name: &str, value: Value| {
            let mut claims = claims();
            claims[name] = value;
            by_secret().check(&signer.token(&claims), NOW, &mut 0).map(|said| said.identity)
        };
        assert_eq!(check("extra", json!({ "a": [1] })), Ok("ada".to_owned()));
        assert_eq!(check("aud", json!("push")), Ok("ada".to_owned()));
        assert_eq!(check("sub", json!(7)), Ok("7".to_owned()));
        assert_eq!(check("nbf", json!(NOW + 5)), Ok("ada".to_owned()));
        assert_eq!(check("exp", json!(NOW - 4)), Ok("ada".to_owned()), "within the leeway");
        assert_eq!(check("exp", json!(NOW as f64 + 0.5)), Ok("ada".to_owned()));
        for (name, value, error) in [
            ("iss", json!("https://evil.example"), TokenError::WrongIssuer),
            ("iss", Value::Null, TokenError::WrongIssuer),
            ("aud", json!("pushy"), TokenError::WrongAudience),
            ("aud", json!(["a", "b"]), TokenError::WrongAudience),
            ("aud", json!({ "push": "push" }), TokenError::WrongAudience),
            ("exp", json!(NOW - 5), TokenError::Expired),
            ("exp", json!(-1), TokenError::Expired),
            ("exp", json!("2099"), TokenError::BadTime),
            ("exp", Value::Null, TokenError::BadTime),
            ("exp", json!([NOW + 60]), TokenError::Malformed),
            ("exp", json!(1e300), TokenError::BadTime),
            ("exp", json!(u64::MAX), TokenError::BadTime),
            ("exp", json!((NOW + 60) * 1000), TokenError::BadTime),
            ("nbf", json!(NOW + 6), TokenError::NotYetValid),
            ("nbf", json!("now"), TokenError::BadTime),
            ("nbf", Value::Null, TokenError::BadTime),
            ("nbf", json!(1e300), TokenError::BadTime),
            ("iat", json!("now"), TokenError::BadTime),
            ("sub", json!(""), TokenError::NoIdentity),
            ("sub", json!("x".repeat(MAX_IDENTITY_BYTES + 1)), TokenError::NoIdentity),
            ("sub", json!(["ada"]), TokenError::Malformed),
        ] {
            assert_eq!(check(name, value.clone()), Err(error), "{name} {value}");
        }
    }

    #[test]
    fn what_a_head_asks_for_is_done_or_refused() {
        let check = |head: Value| {
            let token = Signer::secret(SECRET).token_with(head, &claims());
            by_secret().check(&token, NOW, &mut 0).map(|said| said.identity)
        };
        for fine in [
            json!({}),
            json!({ "typ": "at+JWT" }),
            json!({ "typ": "application/at+jwt" }),
            json!({ "b64": true }),
            json!({ "zip": "DEF", "jku": "https://evil.example/", "of": { "no": "interest" } }),
        ] {
            assert_eq!(check(fine.clone()), Ok("ada".to_owned()), "{fine}");
        }
        for (head, error) in [
            (json!({ "crit": ["exp"], "exp": 1 }), TokenError::UnknownExtension),
            (json!({ "crit": [] }), TokenError::UnknownExtension),
            (json!({ "crit": null }), TokenError::UnknownExtension),
            (json!({ "b64": false }), TokenError::UnknownExtension),
            (json!({ "b64": "no" }), TokenError::UnknownExtension),
            (json!({ "typ": "logout+jwt" }), TokenError::OtherType),
            (json!({ "typ": "chat+jwt" }), TokenError::OtherType),
            (json!({ "typ": "application/DPoP+jwt" }), TokenError::OtherType),
            (json!({ "typ": ["JWT"] }), TokenError::Malformed),
            (json!({ "kid": 1 }), TokenError::Malformed),
        ] {
            assert_eq!(check(head.clone()), Err(error), "{head}");
        }
    }

    #[test]
    fn what_names_a_member_twice_is_no_token() {
        let claims = claims().to_string();
        let twice = |text: &str, more: &str| format!("{},{more}}}", text.strip_suffix('}').unwrap());
        let head = r#"{"alg":"HS256"}"#;
        for (head, claims) in [
            (head.to_owned(), twice(&claims, r#""sub":"bob""#)),
            (head.to_owned(), twice(&claims, r#""more":{"a":1,"a":2}"#)),
            (twice(head, r#""alg":"HS256""#), claims.clone()),
            (twice(head, r#""x":1,"x":1"#), claims),
        ] {
            let token = Signer::secret(SECRET).signed(&head, &claims);
            assert_eq!(by_secret().check(&token, NOW, &mut 0).unwrap_err(), TokenError::Malformed, "{head} {claims}");
        }
    }

    #[test]
    fn a_lifetime_has_a_limit_where_one_is_set() {
        let check = |exp: u64, iat: Value| {
            let (mut claims, mut tokens) = (claims(), by_secret());
            claims["exp"] = exp.into();
            if iat != false {
                claims["iat"] = iat;
            }
            tokens.max_lifetime_s = Some(3600);
            tokens.check(&Signer::secret(SECRET).token(&claims), NOW, &mut 0).map(|said| said.expires_at)
        };
        for (exp, iat, is_fine) in [
            (NOW + 3605, json!(false), true),
            (NOW + 3606, json!(false), false),
            (NOW + 60, json!(NOW - 3540), true),
            (NOW + 60, json!(NOW - 3546), false),
            (NOW + 60, json!(-1e300), false),
            // What is issued in future lives from now on.
            (NOW + 9000, json!(NOW + 8999), false),
        ] {
            let expected = if is_fine { Ok(exp + 5) } else { Err(TokenError::LivesTooLong) };
            assert_eq!(check(exp, iat.clone()), expected, "{exp} {iat}");
        }
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let tokens = by_secret();
        for text in ["", ".", "..", "...", "a.b.c", "ey.ey.ey", "é.é.é", &by_parts(&json!({}), &json!({}))] {
            let error = tokens.check(text, NOW, &mut 0).unwrap_err();
            assert!(matches!(error, TokenError::Malformed | TokenError::WrongSignature), "{text} {error:?}");
        }
        let not_an_object = Signer::secret(SECRET).token(&json!(["ada"]));
        assert_eq!(tokens.check(&not_an_object, NOW, &mut 0).unwrap_err(), TokenError::Malformed);
        assert_eq!(tokens.check(&"a".repeat(MAX_TOKEN_BYTES + 1), NOW, &mut 0).unwrap_err(), TokenError::TooLong);
    }
}
