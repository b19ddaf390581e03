//! When each token was spoken, from where the decoder looked for it.
//!
//! While a decoder that attends writes a token, some heads of its
//! cross-attention look at the frames in which the token is spoken. Speech runs
//! forward, so the frames are shared out among the tokens in order, such that as
//! much attention as possible falls on each token's own frames: a dynamic time
//! warping in which no token goes back and none is left without a frame. Frames
//! at the ends of a share that hardly anything fell on are silence and belong to
//! nobody.

use std::ops::Range;

/// A frame at the edge of a share is silence if it has less than this part of
/// the attention that the share's best frame has.
const SILENT: f32 = 0.05;

/// The frames of each token. `attention` holds for each token the weight of
/// every frame.
pub(super) fn frames(attention: &[Vec<f32>]) -> Vec<Range<usize>> {
    let ends = share_out(attention);
    let starts = [0].into_iter().chain(ends.iter().copied());
    let shares = starts.zip(&ends).map(|(start, &end)| start..end);
    shares
        .zip(attention)
        .map(|(share, weights)| without_silence(share, weights))
        .collect()
}

/// The end of each token's share of the frames.
fn share_out(attention: &[Vec<f32>]) -> Vec<usize> {
    let frames = attention.first().map_or(0, Vec::len);
    // best[end]: most attention that the tokens so far can have on the frames
    // before `end`; begins[token][end]: where the last of them then begins.
    let mut best = vec![f32::NEG_INFINITY; frames + 1];
    best[0] = 0.0;
    let mut begins = Vec::with_capacity(attention.len());
    for weights in attention {
        let mut begin = vec![0; frames + 1];
        let mut with_token = vec![f32::NEG_INFINITY; frames + 1];
        for end in 1..=frames {
            let (from, before) = if with_token[end - 1] > best[end - 1] {
                (begin[end - 1], with_token[end - 1])
            } else {
                (end - 1, best[end - 1])
            };
            begin[end] = from;
            with_token[end] = before + weights[end - 1];
        }
        best = with_token;
        begins.push(begin);
    }
    let mut ends = vec![frames; attention.len()];
    for token in (1..ends.len()).rev() {
        ends[token - 1] = begins[token][ends[token]];
    }
    ends
}

fn without_silence(share: Range<usize>, weights: &[f32]) -> Range<usize> {
    let weights = &weights[share.clone()];
    let least = weights.iter().copied().fold(0.0, f32::max) * SILENT;
    let heard = |&weight: &f32| weight >= least;
    let first = weights.iter().position(heard).unwrap_or(0);
    let last = weights.iter().rposition(heard).map_or(0, |last| last + 1);
    share.start + first..share.start + last
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attention of one token: weight 1 on some frames of 12.
    fn looks_at(frames: Range<usize>) -> Vec<f32> {
        (0..12)
            .map(|at| if frames.contains(&at) { 1.0 } else { 0.001 })
            .collect()
    }

    #[test]
    fn tokens_get_the_frames_they_looked_at() {
        let attention = [looks_at(1..4), looks_at(4..5), looks_at(7..11)];
        assert_eq!(frames(&attention), [1..4, 4..5, 7..11]);
    }

    #[test]
    fn a_token_that_looks_back_keeps_its_place() {
        let attention = [looks_at(2..5), looks_at(0..2), looks_at(6..9)];
        let found = frames(&attention);
        assert!(found[0].end <= found[1].start && found[1].end <= found[2].start);
        assert_eq!(found[0], 2..5);
        assert_eq!(found[2], 6..9);
    }

    #[test]
    fn more_tokens_than_frames_and_none_at_all_do_no_harm() {
        let crowded = vec![vec![0.5, 0.5]; 5];
        let found = frames(&crowded);
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|share| share.end <= 2));
        assert!(frames(&[]).is_empty());
        assert_eq!(frames(&[vec![], vec![]]), [0..0, 0..0]);
    }
}
