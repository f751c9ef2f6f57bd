//! How an input is cut: the fuzzer chooses, so that it can aim at the borders of the decoder.

/// Takes up to four cut sizes off the front of an input: one byte says how many, then one byte for each.
pub fn take_cuts(data: &[u8]) -> Option<(Vec<usize>, &[u8])> {
    let (&count, rest) = data.split_first()?;
    let (sizes, rest) = rest.split_at_checked(usize::from(count % 5))?;
    Some((sizes.iter().map(|&size| usize::from(size).max(1)).collect(), rest))
}

/// The input in pieces of those sizes; the last size repeats, and no size at all means one piece.
pub fn pieces<'a>(mut input: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut sizes = cuts.iter().chain(cuts.last().into_iter().cycle());
    let mut all = Vec::new();
    while !input.is_empty() {
        let size = sizes.next().copied().unwrap_or(usize::MAX).min(input.len());
        let (piece, rest) = input.split_at(size);
        all.push(piece);
        input = rest;
    }
    all
}
