//! Why runs failed, as reports say it.

use serde_json::Value;

/// A reason with what a server answered as words, in place of the JSON in which it said so: `… answered 426
/// upgrade-required: this path is a WebSocket (59 times)`. The record of the run keeps the answer as it came.
pub fn in_words(reason: &str) -> String {
    let found = reason.match_indices('{').find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&reason[at..]).into_iter::<Value>();
        let said = words(&values.next()?.ok()?)?;
        Some(format!("{}{said}{}", &reason[..at], &reason[at + values.byte_offset()..]))
    });
    found.unwrap_or_else(|| reason.to_owned())
}

/// `code: message` of an error, whether the code is called so or `error`; `None` where neither is there.
fn words(answer: &Value) -> Option<String> {
    if answer["error"].is_object() {
        return words(&answer["error"]);
    }
    let text = |name: &str| match &answer[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let parts = [text("error").or_else(|| text("code")), text("message")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_server_is_said_in_words_and_what_stands_around_it_stays() {
        let said = |answer: &str| in_words(&format!("/poll answered 400 {answer} (3 times); 0 of 2 clients"));
        let around = |words: &str| format!("/poll answered 400 {words} (3 times); 0 of 2 clients");
        for (answer, words) in [
            (
                r#"{"error":"bad-request","message":"say \"since\", {n} or none"}"#,
                r#"bad-request: say "since", {n} or none"#,
            ),
            (r#"{"code":1,"message":"Session ID unknown"}"#, "1: Session ID unknown"),
            (r#"{"error":{"code":103,"message":"permission denied"}}"#, "103: permission denied"),
            (r#"{"message":"no"}"#, "no"),
            (r#"{"error":"busy"}"#, "busy"),
        ] {
            assert_eq!(said(answer), around(words));
        }
        // What says nothing, or is cut off, stays as it came.
        for answer in ["<h1>Bad Gateway</h1>", r#"{"status":"down"}"#, r#"{"error":"bad-requ"#, "{}"] {
            assert_eq!(said(answer), around(answer));
        }
    }
}
