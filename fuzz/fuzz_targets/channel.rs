//! A channel name is accepted exactly when it is of the documented form, and needs no escape in JSON or a URL.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pushlab_wire::channel::Channel;
use pushlab_wire::http::split_target;
use pushlab_wire::native::json_string;

fuzz_target!(|text: &str| {
    let is_documented = (1..=128).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:".contains(c))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let channel = Channel::parse(text);
    assert_eq!(channel.is_ok(), is_documented);
    if let Ok(channel) = channel {
        assert_eq!(channel.as_str(), text);
        assert_eq!(json_string(text), format!("\"{text}\""));
        let target = format!("/ws?channel={text}");
        assert_eq!(split_target(&target).1.next(), Some(("channel".into(), text.into())));
    }
});
