//! Search for the likeliest tokens in a model that scores them frame by frame: a
//! transducer, or CTC.
//!
//! At each frame a hypothesis either stays as it is, which is a *blank*, or gains
//! one token; a transducer that could emit several in one frame is held to one
//! (Kang et al., "Fast and parallel decoding for transducer", 2023). With CTC the
//! last token once more, without a blank between, is still the same token.
//! Hypotheses that come to the same tokens are one, and their probabilities add
//! up (Graves, "Sequence transduction with recurrent neural networks", 2012;
//! Hannun et al., "First-pass large vocabulary continuous speech recognition
//! using bi-directional recurrent DNNs", 2014). The best `width` of them go on:
//! with one it is greedy decoding, with more a beam.

use super::Lexicon;
use super::vocabulary::Vocabulary;
use crate::graph::GraphError;

/// Scores what may come next.
pub(super) trait Scorer {
    /// Whether a token in neighbouring frames is one token, as in CTC.
    const REPEATS_ARE_ONE: bool;

    /// Natural logarithms of the probabilities of all tokens at a frame of the
    /// encoder, after these tokens.
    fn scores(&mut self, frame: &[f32], after: &[Emitted]) -> Result<Vec<f32>, GraphError>;
}

/// A token, and where it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Emitted {
    pub(super) id: u32,
    pub(super) probability: f32,
    pub(super) frame: usize,
}

/// What to search with.
pub(super) struct Search<'m> {
    pub(super) width: usize,
    pub(super) blank: u32,
    pub(super) vocabulary: &'m Vocabulary,
    pub(super) lexicon: &'m Lexicon,
}

/// Some tokens, and the logarithm of how probable they are so far.
#[derive(Clone, Debug)]
struct Hypothesis {
    tokens: Vec<Emitted>,
    /// Of all ways to them that the last token is over in.
    over: f32,
    /// Of all ways in which it may go on, with CTC.
    going_on: f32,
    /// What the lexicon adds.
    bonus: f32,
    /// The word that they end in.
    word: String,
}

impl Search<'_> {
    /// The likeliest tokens for the frames, which have `size` numbers each.
    pub(super) fn run<S: Scorer>(
        &self,
        frames: &[f32],
        size: usize,
        scorer: &mut S,
    ) -> Result<Vec<Emitted>, GraphError> {
        let mut beam = vec![Hypothesis::start()];
        for (at, frame) in frames.chunks_exact(size).enumerate() {
            let mut next = Vec::with_capacity(beam.len() * (self.width + 2));
            for hypothesis in beam {
                let scores = scorer.scores(frame, &hypothesis.tokens)?;
                self.extend::<S>(hypothesis, &scores, at, &mut next);
            }
            next.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
            next.truncate(self.width);
            beam = next;
        }
        let rank = |found: &Hypothesis| found.rank() + self.lexicon.bonus(&found.word, b"");
        let best = beam.into_iter().max_by(|a, b| rank(a).total_cmp(&rank(b)));
        Ok(best.map_or(Vec::new(), |best| best.tokens))
    }

    /// Adds what can come of a hypothesis in one frame.
    fn extend<S: Scorer>(
        &self,
        hypothesis: Hypothesis,
        scores: &[f32],
        frame: usize,
        next: &mut Vec<Hypothesis>,
    ) {
        let last = hypothesis.tokens.last().map(|token| token.id);
        let again = last.filter(|_| S::REPEATS_ARE_ONE);
        for (id, bonus) in self.likeliest(&hypothesis.word, scores) {
            let before = if again == Some(id) {
                hypothesis.over
            } else {
                hypothesis.log_probability()
            };
            if before > f32::NEG_INFINITY {
                let score = scores[id as usize];
                let mut longer = hypothesis.clone();
                longer.set::<S>(before + score);
                longer.bonus += bonus;
                self.vocabulary.extend_word(&mut longer.word, id);
                longer.tokens.push(Emitted {
                    id,
                    probability: score.exp(),
                    frame,
                });
                longer.join(next);
            }
        }
        let mut same = hypothesis;
        same.over = same.log_probability() + scores[self.blank as usize];
        same.going_on = again.map_or(f32::NEG_INFINITY, |id| same.going_on + scores[id as usize]);
        same.join(next);
    }

    /// The tokens with which a hypothesis that ends in `word` may go on, as many as
    /// can survive, and what the lexicon adds to their scores.
    fn likeliest(&self, word: &str, scores: &[f32]) -> Vec<(u32, f32)> {
        let tokens = || (0..scores.len()).filter(|&id| id != self.blank as usize);
        let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let bonus = |id: usize| {
            let text = self.vocabulary.token(id);
            self.lexicon.bonus_near_best(scores[id], best, word, text)
        };
        let mut found: Vec<(u32, f32)> = tokens().map(|id| (id as u32, bonus(id))).collect();
        let rank = |&(id, bonus): &(u32, f32)| scores[id as usize] + bonus;
        // Of equals the first, so that the order is the same everywhere.
        let order = |a: &_, b: &_| rank(b).total_cmp(&rank(a)).then(a.0.cmp(&b.0));
        if found.len() > self.width {
            found.select_nth_unstable_by(self.width, order);
            found.truncate(self.width);
        }
        found
    }
}

impl Hypothesis {
    fn start() -> Self {
        Self {
            tokens: Vec::new(),
            over: 0.0,
            going_on: f32::NEG_INFINITY,
            bonus: 0.0,
            word: String::new(),
        }
    }

    /// Sets the probability of a hypothesis that has just gained a token.
    fn set<S: Scorer>(&mut self, log_probability: f32) {
        (self.over, self.going_on) = if S::REPEATS_ARE_ONE {
            (f32::NEG_INFINITY, log_probability)
        } else {
            (log_probability, f32::NEG_INFINITY)
        };
    }

    fn log_probability(&self) -> f32 {
        log_sum(self.over, self.going_on)
    }

    fn rank(&self) -> f32 {
        self.log_probability() + self.bonus
    }

    /// Puts it among others, as one with that of the same tokens if there is one.
    fn join(self, others: &mut Vec<Self>) {
        let ids = |of: &Self| of.tokens.iter().map(|token| token.id).collect::<Vec<_>>();
        let own = ids(&self);
        let Some(same) = others.iter_mut().find(|other| ids(other) == own) else {
            others.push(self);
            return;
        };
        let (over, going_on) = (
            log_sum(same.over, self.over),
            log_sum(same.going_on, self.going_on),
        );
        if self.log_probability() > same.log_probability() {
            *same = self;
        }
        (same.over, same.going_on) = (over, going_on);
    }
}

/// The logarithm of the sum of two numbers whose logarithms are given.
fn log_sum(a: f32, b: f32) -> f32 {
    let (more, less) = if a > b { (a, b) } else { (b, a) };
    if less == f32::NEG_INFINITY {
        more
    } else {
        more + (less - more).exp().ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLANK: u32 = 0;
    const TOKENS: usize = 3;

    /// Scores that depend on the frame and, for a transducer, on the last token.
    struct Made<const CTC: bool>;

    impl<const CTC: bool> Scorer for Made<CTC> {
        const REPEATS_ARE_ONE: bool = CTC;

        fn scores(&mut self, frame: &[f32], after: &[Emitted]) -> Result<Vec<f32>, GraphError> {
            let last = after.last().filter(|_| !CTC).map_or(0, |token| token.id);
            let raw = |id: usize| frame[0] * (1.0 + id as f32) + 1.3 * (id as f32 * last as f32);
            let raw: Vec<f32> = (0..TOKENS).map(|id| 1.5 * raw(id).sin()).collect();
            let total = raw.iter().map(|score| score.exp()).sum::<f32>().ln();
            Ok(raw.iter().map(|score| score - total).collect())
        }
    }

    fn found<S: Scorer>(frames: &[f32], width: usize, scorer: &mut S) -> Vec<u32> {
        let vocabulary = Vocabulary::parse("\n a\n b\n").unwrap();
        let search = Search {
            width,
            blank: BLANK,
            vocabulary: &vocabulary,
            lexicon: &Lexicon::default(),
        };
        let tokens = search.run(frames, 1, scorer).unwrap();
        tokens.iter().map(|token| token.id).collect()
    }

    /// By the definition: of all paths, the tokens whose paths are likeliest together.
    fn by_definition<const CTC: bool>(frames: &[f32]) -> Vec<u32> {
        let mut sums: Vec<(Vec<u32>, f32)> = Vec::new();
        for path in 0..TOKENS.pow(frames.len() as u32) {
            let (mut tokens, mut last, mut sum) = (Vec::<Emitted>::new(), BLANK, 0.0);
            for (at, frame) in frames.iter().enumerate() {
                let id = (path / TOKENS.pow(at as u32) % TOKENS) as u32;
                sum += Made::<CTC>.scores(&[*frame], &tokens).unwrap()[id as usize];
                if id != BLANK && !(CTC && id == last) {
                    tokens.push(Emitted {
                        id,
                        probability: 0.0,
                        frame: at,
                    });
                }
                last = id;
            }
            let tokens: Vec<u32> = tokens.iter().map(|token| token.id).collect();
            match sums.iter_mut().find(|(other, _)| *other == tokens) {
                Some((_, total)) => *total = log_sum(*total, sum),
                None => sums.push((tokens, sum)),
            }
        }
        let best = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        best.unwrap().0
    }

    fn frames(seed: usize) -> Vec<f32> {
        (0..5)
            .map(|at| (seed * 5 + at) as f32 * 0.77 % 6.0 + 0.1)
            .collect()
    }

    #[test]
    fn a_wide_beam_finds_what_is_likeliest_of_all() {
        for seed in 0..20 {
            let frames = frames(seed);
            let of_ctc = found(&frames, 300, &mut Made::<true>);
            assert_eq!(of_ctc, by_definition::<true>(&frames), "{seed}");
            let of_transducer = found(&frames, 300, &mut Made::<false>);
            assert_eq!(of_transducer, by_definition::<false>(&frames), "{seed}");
        }
    }

    #[test]
    fn a_width_of_one_takes_the_likeliest_of_each_frame() {
        for seed in 0..20 {
            let mut greedy = Vec::new();
            for (at, &frame) in frames(seed).iter().enumerate() {
                let scores = Made::<false>.scores(&[frame], &greedy).unwrap();
                let best = (0..TOKENS).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
                let id = best.unwrap() as u32;
                if id != BLANK {
                    greedy.push(Emitted {
                        id,
                        probability: 0.0,
                        frame: at,
                    });
                }
            }
            let greedy: Vec<u32> = greedy.iter().map(|token| token.id).collect();
            assert_eq!(
                found(&frames(seed), 1, &mut Made::<false>),
                greedy,
                "{seed}"
            );
        }
    }

    /// Scores as given, of the tokens for each frame.
    struct Given<'s>(&'s [[f32; TOKENS]]);

    impl Scorer for Given<'_> {
        const REPEATS_ARE_ONE: bool = true;

        fn scores(&mut self, frame: &[f32], _: &[Emitted]) -> Result<Vec<f32>, GraphError> {
            Ok(self.0[frame[0] as usize].map(f32::ln).to_vec())
        }
    }

    #[test]
    fn a_beam_adds_up_what_greedy_decoding_misses() {
        // Blank is likeliest in each frame, but `a` somewhere in the two is more so.
        let mut scorer = Given(&[[0.55, 0.44, 0.01], [0.55, 0.44, 0.01]]);
        assert!(found(&[0.0, 1.0], 1, &mut scorer).is_empty());
        assert_eq!(found(&[0.0, 1.0], 4, &mut scorer), [1]);
    }

    #[test]
    fn a_token_is_two_only_with_a_blank_between() {
        let (a, blank) = ([0.01, 0.98, 0.01], [0.98, 0.01, 0.01]);
        for width in [1, 4] {
            assert_eq!(found(&[0.0, 1.0], width, &mut Given(&[a, a])), [1]);
            assert_eq!(
                found(&[0.0, 1.0, 2.0], width, &mut Given(&[a, blank, a])),
                [1, 1]
            );
        }
    }

    #[test]
    fn without_frames_nothing_was_said() {
        assert!(found(&[], 4, &mut Made::<true>).is_empty());
    }
}
