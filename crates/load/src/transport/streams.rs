//! An endless HTTP response: its head, then its body in pieces.

use super::frames::{MAX_HEAD_BYTES, excerpt};
use super::{Cut, Tally};
use pushlab_wire::http::{BodyDecoder, Headers, parse_response};

/// Reads one endless response.
#[derive(Debug, Default)]
pub struct StreamReader {
    body: Option<BodyDecoder>,
}

impl StreamReader {
    /// Whether the head has come.
    pub fn is_open(&self) -> bool {
        self.body.is_some()
    }

    /// Reads the head, then passes on every piece of the body, and the count of texts to add those to that the piece
    /// ends. Returns the bytes that are done with.
    ///
    /// # Errors
    /// A status other than 200, a broken or ended body, or what `on_data` answers.
    pub fn receive(
        &mut self,
        path: &str,
        input: &[u8],
        tally: &mut Tally,
        mut on_data: impl FnMut(&[u8], &mut u64) -> Result<(), Cut>,
    ) -> Result<usize, Cut> {
        let mut at = 0;
        let body = match &mut self.body {
            Some(body) => body,
            None => {
                let mut headers = Headers::default();
                let Some((head, size)) = parse_response(input, &mut headers)? else {
                    return match input.len() {
                        0..=MAX_HEAD_BYTES => Ok(0),
                        _ => Err(Cut::HeadTooLarge { max: MAX_HEAD_BYTES }),
                    };
                };
                tally.down.heads += size as u64;
                if head.status != 200 {
                    return Err(Cut::Status {
                        path: path.to_owned(),
                        status: head.status,
                        text: excerpt(&input[size..]),
                    });
                }
                at = size;
                self.body.insert(BodyDecoder::new(head.body))
            }
        };
        while at < input.len() {
            let step = body.decode(&input[at..])?;
            at += step.consumed;
            if !step.data.is_empty() {
                on_data(step.data, &mut tally.down.texts)?;
            }
            if step.is_done {
                return Err(Cut::StreamEnded);
            }
        }
        Ok(at)
    }
}
