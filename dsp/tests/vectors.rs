//! Quantisation and dot products against the sums they stand for.

mod common;

use common::noise;
use earwitness_dsp::dot::{dot_f32, dot_i8};
use earwitness_dsp::quantize::quantize_i8;
use proptest::prelude::*;

fn quantized(values: &[f32]) -> (f32, Vec<i8>) {
    let mut q = vec![99; values.len()];
    (quantize_i8(values, &mut q), q)
}

fn one_length<T: Clone + std::fmt::Debug>(
    element: impl Strategy<Value = T> + Clone,
) -> impl Strategy<Value = (Vec<T>, Vec<T>)> {
    (0_usize..600).prop_flat_map(move |len| {
        let vector = prop::collection::vec(element.clone(), len);
        (vector.clone(), vector)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn int8_is_exact((a, b) in one_length(any::<i8>())) {
        let exact: i64 = a.iter().zip(&b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum();
        prop_assert_eq!(i64::from(dot_i8(&a, &b)), exact);
    }

    #[test]
    fn float_is_as_good_as_its_precision((a, b) in one_length(-1.0_f32..1.0)) {
        let products = || a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b));
        let error = (f64::from(dot_f32(&a, &b)) - products().sum::<f64>()).abs();
        let magnitude: f64 = products().map(f64::abs).sum();
        prop_assert!(error <= magnitude * a.len() as f64 * f64::from(f32::EPSILON));
    }

    #[test]
    fn a_value_comes_back_within_half_a_step(
        values in prop::collection::vec(prop_oneof![-1e6_f32..1e6, -1e-6_f32..1e-6], 1..400),
    ) {
        let (scale, q) = quantized(&values);
        for (&value, &q) in values.iter().zip(&q) {
            prop_assert!(q > i8::MIN);
            prop_assert!((value - scale * f32::from(q)).abs() <= scale * 0.5001);
        }
        prop_assert_eq!(q.iter().map(|q| q.unsigned_abs()).max(), Some(127));
    }
}

#[test]
fn the_longest_exact_int8_sum_fits() {
    let longest = vec![i8::MIN; 131_071];
    assert_eq!(dot_i8(&longest, &longest), 131_071 * 16_384);
}

#[test]
fn float_lanes_add_in_the_stated_order() {
    let (a, b) = (noise(1, 21, 1.0), noise(2, 21, 1.0));
    let mut lanes = [0.0_f32; 8];
    for i in 0..21 {
        lanes[i % 8] += a[i] * b[i];
    }
    let pairs: Vec<f32> = (0..4).map(|i| lanes[i] + lanes[i + 4]).collect();
    let sum = (pairs[0] + pairs[2]) + (pairs[1] + pairs[3]);
    assert_eq!(dot_f32(&a, &b).to_bits(), sum.to_bits());
}

#[test]
fn no_elements_sum_to_zero() {
    assert_eq!(dot_i8(&[], &[]), 0);
    assert_eq!(dot_f32(&[], &[]), 0.0);
}

#[test]
#[should_panic(expected = "one length")]
fn vectors_of_two_lengths_are_a_bug() {
    dot_i8(&[1, 2], &[1]);
}

#[test]
fn a_vector_without_size_has_scale_zero() {
    assert_eq!(quantized(&[]), (0.0, vec![]));
    assert_eq!(quantized(&[0.0, -0.0]), (0.0, vec![0, 0]));
    assert_eq!(quantized(&[1e-40, -1e-39]), (0.0, vec![0, 0]));
}

#[test]
fn values_that_are_not_finite_count_as_zero() {
    let (scale, q) = quantized(&[f32::NAN, 127.0, f32::INFINITY, -63.5, f32::NEG_INFINITY]);
    assert_eq!((scale, q), (1.0, vec![0, 127, 0, -64, 0]));
}

#[test]
fn the_largest_floats_do_not_overflow() {
    let (scale, q) = quantized(&[f32::MAX, f32::MIN, 0.0]);
    assert!(scale.is_finite());
    assert_eq!(q, [127, -127, 0]);
}
