//! When each token was spoken, from where the decoder looked for it.
//!
//! While a decoder that attends writes a token, some heads of its
//! cross-attention look at the frames in which the token is spoken. Speech runs
//! forward, so the frames are shared out among the tokens in order, such that as
//! much attention as possible falls on each token's own frames: a dynamic time
//! warping in which no token goes back and none is left without a frame. Frames
//! at the ends of a share in which it is quiet belong to nobody: attention rests
//! somewhere, even where nothing is said.
//!
//! The same weights tell whether there was speech at all: a token that was spoken
//! is looked for in one place, one that is made up is looked for everywhere.

use std::ops::Range;

/// A frame is quiet if it has less than this part of the level of the loudest.
const QUIET: f32 = 0.03;

/// Frames to either side of a token's best frame that count as the same place.
const PLACE: usize = 4;

/// How far each token was heard in one place: the mean, over the tokens, of the
/// attention that falls close to the token's best frame, from 0 to 1.
pub(super) fn focus(attention: &[Vec<f32>]) -> f32 {
    let in_one_place = |weights: &Vec<f32>| {
        let frames = 0..weights.len();
        let best = frames.max_by(|&a, &b| weights[a].total_cmp(&weights[b]));
        let best = best.unwrap_or(0);
        let end = weights.len().min(best + PLACE + 1);
        weights[best.saturating_sub(PLACE)..end].iter().sum::<f32>()
    };
    attention.iter().map(in_one_place).sum::<f32>() / attention.len().max(1) as f32
}

/// The frames of each token. `attention` holds for each token the weight of
/// every frame, `levels` how loud each is.
pub(super) fn frames(attention: &[Vec<f32>], levels: &[f32]) -> Vec<Range<usize>> {
    let quiet = QUIET * levels.iter().copied().fold(0.0, f32::max);
    let ends = share_out(attention);
    let starts = [0].into_iter().chain(ends.iter().copied());
    starts
        .zip(&ends)
        .map(|(start, &end)| without_silence(start..end, levels, quiet))
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

/// A share without the quiet frames at its ends, unless all of them are.
fn without_silence(share: Range<usize>, levels: &[f32], quiet: f32) -> Range<usize> {
    let loud = |&at: &usize| levels.get(at).is_some_and(|&level| level > quiet);
    match (share.clone().find(loud), share.clone().rfind(loud)) {
        (Some(first), Some(last)) => first..last + 1,
        _ => share,
    }
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

    /// Loud in some frames of 12.
    fn loud(frames: Range<usize>) -> Vec<f32> {
        (0..12)
            .map(|at| if frames.contains(&at) { 0.2 } else { 1e-3 })
            .collect()
    }

    #[test]
    fn tokens_get_the_frames_they_looked_at() {
        let attention = [looks_at(2..4), looks_at(4..5), looks_at(7..11)];
        let found = frames(&attention, &loud(0..12));
        assert_eq!((found[0].end, &found[1], found[2].end), (4, &(4..7), 12));
        let found = frames(&attention, &loud(1..11));
        assert_eq!((found[0].start, found[2].end), (1, 11));
        assert_eq!(frames(&attention, &[0.0; 12])[0].start, 0);
    }

    #[test]
    fn a_token_that_looks_back_keeps_its_place() {
        let attention = [looks_at(2..5), looks_at(0..2), looks_at(6..9)];
        let found = frames(&attention, &loud(0..12));
        assert!(found[0].end <= found[1].start && found[1].end <= found[2].start);
        assert!(found[0].end >= 5 && found[2].contains(&8));
    }

    #[test]
    fn focus_tells_one_place_from_everywhere() {
        let place: Vec<f32> = (0..100).map(|at| if at == 3 { 1.0 } else { 0.0 }).collect();
        let everywhere = vec![0.01; 100];
        assert!((focus(std::slice::from_ref(&place)) - 1.0).abs() < 1e-6);
        assert!((focus(&[place, everywhere]) - 0.54).abs() < 0.05);
        assert_eq!(focus(&[]), 0.0);
        assert_eq!(focus(&[vec![]]), 0.0);
    }

    #[test]
    fn more_tokens_than_frames_and_none_at_all_do_no_harm() {
        let crowded = vec![vec![0.5, 0.5]; 5];
        let found = frames(&crowded, &[1.0, 1.0]);
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|share| share.end <= 2));
        assert!(frames(&[], &[]).is_empty());
        assert_eq!(frames(&[vec![], vec![]], &[]), [0..0, 0..0]);
    }
}
