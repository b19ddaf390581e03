//! Hand-computed examples, and slow obvious twins for what optimises.

use std::collections::HashSet;

use proptest::{prelude::*, test_runner::RngSeed};

use super::*;

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

fn streams(texts: &[&'static str]) -> Vec<Vec<&'static str>> {
    texts.iter().map(|text| words(text)).collect()
}

/// Levenshtein distance by its definition.
fn distance(one: &[u8], other: &[u8]) -> usize {
    match (one, other) {
        ([], rest) | (rest, []) => rest.len(),
        ([a, one_rest @ ..], [b, other_rest @ ..]) => {
            let kept = distance(one_rest, other_rest) + usize::from(a != b);
            let changed = distance(one_rest, other).min(distance(one, other_rest)) + 1;
            kept.min(changed)
        }
    }
}

/// All orders of `0..n`.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(n - 1);
    let with_last = |order: &Vec<usize>, place: usize| {
        let mut longer = order.clone();
        longer.insert(place, n - 1);
        longer
    };
    shorter
        .iter()
        .flat_map(|order| (0..n).map(move |place| with_last(order, place)))
        .collect()
}

#[test]
fn word_errors_are_counted_by_kind() {
    let errors = word_errors(
        &words("the cat sat on the mat"),
        &words("the bat sat the mat now"),
    );
    assert_eq!(
        errors,
        WordErrors {
            substitutions: 1,
            deletions: 1,
            insertions: 1,
            words: 6
        }
    );
    assert!((errors.rate() - 0.5).abs() < 1e-12);
}

#[test]
fn silence_and_noise_have_rates_too() {
    let nothing: [&str; 0] = [];
    assert_eq!(word_errors(&words("one two"), &nothing).rate(), 1.0);
    assert_eq!(word_errors(&nothing, &words("one two")).total(), 2);
    assert_eq!(word_errors(&nothing, &words("one two")).rate(), 0.0);
}

#[test]
fn concatenated_errors_do_not_mind_the_order_of_speakers() {
    let said = streams(&["hello there", "good morning to you"]);
    let heard = streams(&["good morning to you", "hello where"]);
    let errors = concatenated_errors(&said, &heard);
    assert_eq!(
        errors,
        WordErrors {
            substitutions: 1,
            words: 6,
            ..WordErrors::default()
        }
    );
}

#[test]
fn a_speaker_too_many_or_too_few_costs_its_words() {
    let (one, two) = (streams(&["a b c d"]), streams(&["a b", "c d"]));
    assert_eq!(concatenated_errors(&one, &two).total(), 4);
    assert_eq!(concatenated_errors(&two, &one).total(), 4);
    assert_eq!(concatenated_errors::<&str>(&[], &[]), WordErrors::default());
}

#[test]
fn labels_are_mapped_one_to_one() {
    let turns = [
        ("ann", Some(7)),
        ("ann", Some(7)),
        ("ann", Some(8)),
        ("bob", Some(7)),
        ("bob", None),
    ];
    let mapping = best_mapping(&turns);
    let attribution = Attribution::count(&turns, &mapping);
    assert_eq!((attribution.right, attribution.turns), (2, 5));
    assert_eq!(mapping.get(&7), Some(&"ann"));
}

#[test]
fn rand_index_knows_its_fixed_points() {
    let same = [
        ('a', Some(1)),
        ('a', Some(1)),
        ('b', Some(2)),
        ('b', Some(2)),
    ];
    let across = [
        ('a', Some(1)),
        ('a', Some(2)),
        ('b', Some(1)),
        ('b', Some(2)),
    ];
    let lumped = [
        ('a', Some(1)),
        ('a', Some(1)),
        ('b', Some(1)),
        ('b', Some(1)),
    ];
    assert_eq!(adjusted_rand_index(&same), 1.0);
    assert!((adjusted_rand_index(&across) + 0.5).abs() < 1e-12);
    assert_eq!(adjusted_rand_index(&lumped), 0.0);
    // The example of Hubert and Arabie's formula with clusters {0,0,1,2}.
    let split = [
        ('a', Some(0)),
        ('a', Some(0)),
        ('b', Some(1)),
        ('b', Some(2)),
    ];
    assert!((adjusted_rand_index(&split) - 4.0 / 7.0).abs() < 1e-12);
    let unknown = [('a', Some(0)), ('a', Some(0)), ('b', None), ('b', None)];
    assert_eq!(adjusted_rand_index(&unknown), adjusted_rand_index(&split));
}

#[test]
fn retrieval_counts_shares_and_completeness() {
    let mut score = RetrievalScore::default();
    score.add(&[4, 9, 1, 0, 2], &HashSet::from([9, 2]));
    score.add(&[3], &HashSet::from([3]));
    let means = score.means();
    assert_eq!(
        (means.n, means.r1, means.r3, means.r5, means.r15),
        (2, 0.5, 0.75, 1.0, 1.0)
    );
    assert_eq!((means.em3, means.em5, means.em15), (0.5, 1.0, 1.0));
    assert_eq!(RetrievalScore::default().means().r1, 0.0);
}

#[test]
fn percentiles_are_values_that_occurred() {
    let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
    assert_eq!(percentile(&values, 50.0), 50.0);
    assert_eq!(percentile(&values, 99.0), 99.0);
    assert_eq!(percentile(&values, 100.0), 100.0);
    assert_eq!(percentile(&[3.0], 1.0), 3.0);
    assert_eq!(percentile(&[], 50.0), 0.0);
}

fn fixed() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(16_000),
        failure_persistence: None,
        ..Default::default()
    }
}

proptest! {
    #![proptest_config(fixed())]

    #[test]
    fn word_errors_are_the_levenshtein_distance(
        said in prop::collection::vec(0u8..3, 0..7),
        heard in prop::collection::vec(0u8..3, 0..7),
    ) {
        let errors = word_errors(&said, &heard);
        prop_assert_eq!(errors.total(), distance(&said, &heard));
        prop_assert_eq!(said.len() + errors.insertions, heard.len() + errors.deletions);
    }

    #[test]
    fn concatenated_errors_are_the_least_over_all_permutations(
        said in prop::collection::vec(prop::collection::vec(0u8..3, 0..5), 0..5),
        heard in prop::collection::vec(prop::collection::vec(0u8..3, 0..5), 0..5),
    ) {
        let size = said.len().max(heard.len());
        let silence = Vec::new();
        let cost = |order: &Vec<usize>| -> usize {
            let pairs = order.iter().enumerate();
            pairs.map(|(row, &column)| {
                let pair = (said.get(row).unwrap_or(&silence), heard.get(column).unwrap_or(&silence));
                distance(pair.0, pair.1)
            }).sum()
        };
        let least = permutations(size).iter().map(cost).min().unwrap_or(0);
        prop_assert_eq!(concatenated_errors(&said, &heard).total(), least);
    }

    #[test]
    fn attribution_is_the_best_over_all_permutations(
        turns in prop::collection::vec((0usize..4, prop::option::of(0usize..5)), 0..20),
    ) {
        let right = |order: &Vec<usize>| {
            turns.iter().filter(|(person, label)| label.map(|label| order[label]) == Some(*person)).count()
        };
        let most = permutations(5).iter().map(right).max().unwrap_or(0);
        prop_assert_eq!(Attribution::count(&turns, &best_mapping(&turns)).right, most);
    }

    #[test]
    fn rand_index_counts_pairs(
        items in prop::collection::vec((0u8..3, prop::option::of(0u8..3)), 0..12),
    ) {
        let (mut both, mut one, mut other, mut all) = (0.0, 0.0, 0.0, 0.0);
        for (i, a) in items.iter().enumerate() {
            for b in &items[..i] {
                let (first, second) = (a.0 == b.0, a.1.is_some() && a.1 == b.1);
                all += 1.0;
                one += f64::from(u8::from(first));
                other += f64::from(u8::from(second));
                both += f64::from(u8::from(first && second));
            }
        }
        let chance = if all > 0.0 { one * other / all } else { 0.0 };
        let most = f64::midpoint(one, other);
        let index = if most == chance { 1.0 } else { (both - chance) / (most - chance) };
        prop_assert!((adjusted_rand_index(&items) - index).abs() < 1e-9);
    }

    #[test]
    fn normalised_words_are_plain(text in "\\PC{0,40}") {
        for word in normalize(&text) {
            prop_assert!(!word.is_empty());
            prop_assert!(word.chars().all(char::is_alphanumeric), "{:?}", word);
        }
    }
}

#[test]
fn scores_that_part_the_trials_make_no_errors() {
    let errors = VerificationErrors::new(&[0.6, 0.9], &[0.1, 0.5, 0.2]);
    assert_eq!((errors.eer, errors.min_dcf), (0.0, 0.0));
}

#[test]
fn verification_errors_are_those_counted_by_hand() {
    // Above 0.4 one in four of either kind is wrong.
    let same = [0.3, 0.5, 0.7, 0.8];
    let different = [0.1, 0.2, 0.3, 0.6];
    let errors = VerificationErrors::new(&same, &different);
    assert!((errors.eer - 0.25).abs() < 1e-12, "{errors:?}");
    // Above 0.6 nothing is accepted falsely and half is missed.
    assert!((errors.min_dcf - 0.5).abs() < 1e-12, "{errors:?}");
    assert_eq!(VerificationErrors::new(&[], &different).eer, 0.0);
}

#[test]
fn a_score_that_knows_nothing_is_worth_nothing() {
    let errors = VerificationErrors::new(&[0.5; 10], &[0.5; 30]);
    assert!((errors.eer - 0.5).abs() < 1e-12 && (errors.min_dcf - 1.0).abs() < 1e-12);
}
