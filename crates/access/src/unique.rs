//! JSON whose objects name each member once. Of duplicates, some parsers keep the first and some the last, so that two
//! programs would see different tokens (RFC 7515, section 4; RFC 7519, section 4).

use core::fmt;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// A value in which no object has two members of one name, at any depth.
#[derive(Debug)]
pub struct Unique(pub Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(value)) = parts.next_element()? {
            all.push(value);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Unique(value))) = members.next_entry::<String, _>()? {
            if let Some(_before) = all.insert(name, value) {
                return Err(A::Error::custom("duplicate member name"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_each_member_once_is_read_as_it_is() {
        for text in ["null", "[1,-1,1.5,true,\"a\\u0000\",[],{}]", r#"{"a":{"a":[{"a":1},{"a":2}]},"b":null}"#] {
            let Unique(value) = serde_json::from_str(text).unwrap();
            assert_eq!(value, serde_json::from_str::<Value>(text).unwrap());
        }
        for text in [r#"{"a":1,"a":1}"#, r#"{"b":[{"a":{},"\u0061":1}]}"#, "{", &"[".repeat(1000)] {
            assert!(serde_json::from_str::<Unique>(text).is_err(), "{text}");
        }
    }
}
