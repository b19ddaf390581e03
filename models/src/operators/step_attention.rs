//! `StepAttention`: one query attends over a cache that the caller owns.
//!
//! Inputs, all f32 but `length`: query `[1, 1, H*D]`, already divided by the
//! square root of D; keys `[1, L, D, C]`, values `[1, L, C, D]`. With three more
//! the cache is still filling: `length` `[1]` i64 says how many of the C places
//! are valid, and the key and value `[1, 1, H*D]` of the query's own token count
//! as one more place after them. Attribute `first_head` chooses the H = `heads`
//! of the L heads in the cache. Output `[1, 1, H*D]`; with three inputs there may
//! be a second one, the weights `[1, H, C]` that the places had in each head.
//!
//! Keys lie transposed, so that the scores of neighbouring places are summed
//! side by side and need no horizontal additions.

use tract_onnx::pb::NodeProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_core::internal::*;
use tract_onnx::tract_hir::internal::*;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct StepAttention {
    first_head: usize,
    heads: usize,
    shows_weights: bool,
}

pub(super) fn parse(
    _: &tract_onnx::model::ParsingContext,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let first_head = usize::try_from(node.get_attr::<i64>("first_head")?)?;
    let heads = usize::try_from(node.get_attr::<i64>("heads")?)?;
    let operator = StepAttention {
        first_head,
        heads,
        shows_weights: node.output.len() == 2,
    };
    Ok((expand(operator), vec![]))
}

impl Expansion for StepAttention {
    fn name(&self) -> StaticName {
        "StepAttention".into()
    }

    fn rules<'r, 'p: 'r, 's: 'r>(
        &'s self,
        solver: &mut Solver<'r>,
        inputs: &'p [TensorProxy],
        outputs: &'p [TensorProxy],
    ) -> InferenceResult {
        check_output_arity(outputs, 1 + usize::from(self.shows_weights))?;
        for output in outputs {
            solver.equals(&output.datum_type, &inputs[0].datum_type)?;
        }
        solver.equals(&outputs[0].shape, &inputs[0].shape)?;
        if self.shows_weights {
            solver.equals(&outputs[1].rank, 3)?;
            solver.equals(&outputs[1].shape[0], 1.to_dim())?;
            solver.equals(&outputs[1].shape[1], self.heads.to_dim())?;
            solver.equals(&outputs[1].shape[2], &inputs[1].shape[3])?;
        }
        Ok(())
    }

    fn nboutputs(&self) -> TractResult<usize> {
        Ok(1 + usize::from(self.shows_weights))
    }

    fn wire(
        &self,
        prefix: &str,
        model: &mut TypedModel,
        inputs: &[OutletId],
    ) -> TractResult<TVec<OutletId>> {
        model.wire_node(prefix, self.clone(), inputs)
    }
}

impl Op for StepAttention {
    fn name(&self) -> StaticName {
        "StepAttention".into()
    }

    op_as_typed_op!();
}

impl EvalOp for StepAttention {
    op_out_of_plan!();

    fn eval(&self, _: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        let slice = |i: usize| inputs[i].try_as_plain_ram()?.as_slice::<f32>();
        let capacity = *inputs[1].shape().last().context("keys have no shape")?;
        let (length, own) = match inputs.len() {
            3 => (capacity, None),
            6 => {
                let length = *inputs[3].try_as_plain_ram()?.to_scalar::<i64>()?;
                (usize::try_from(length)?, Some((slice(4)?, slice(5)?)))
            }
            other => bail!("StepAttention takes 3 or 6 inputs, not {other}"),
        };
        ensure!(
            length <= capacity,
            "{length} places are more than the cache's {capacity}"
        );
        let query = slice(0)?;
        let head = query.len() / self.heads * capacity;
        let ours = self.first_head * head..(self.first_head + self.heads) * head;
        let block = |i| {
            slice(i)?
                .get(ours.clone())
                .context("the cache has too few heads")
        };
        let cache = Cache {
            keys: block(1)?,
            values: block(2)?,
            capacity,
            length,
        };
        let Attended { mixed, weights } = attend(query, self.heads, &cache, own);
        let mut outputs = tvec!(Tensor::from_shape(inputs[0].shape(), &mixed)?.into());
        if self.shows_weights {
            outputs.push(Tensor::from_shape(&[1, self.heads, length], &weights)?.into());
        }
        Ok(outputs)
    }
}

impl TypedOp for StepAttention {
    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let mut facts = tvec!(inputs[0].without_value());
        if self.shows_weights {
            ensure!(inputs.len() == 3, "only a whole cache shows its weights");
            let places = inputs[1].shape[3].clone();
            facts.push(f32::fact(&[1.to_dim(), self.heads.to_dim(), places]));
        }
        Ok(facts)
    }

    as_op!();
}

/// Keys `[heads, D, capacity]` and values `[heads, capacity, D]`, of which the
/// first `length` places are valid.
struct Cache<'a> {
    keys: &'a [f32],
    values: &'a [f32],
    capacity: usize,
    length: usize,
}

/// The mixture of values `[heads * D]`, and the weights `[heads, length]` that
/// made it.
struct Attended {
    mixed: Vec<f32>,
    weights: Vec<f32>,
}

/// Softmax attention of every head of `query`; `own` is one more key and value.
fn attend(query: &[f32], heads: usize, cache: &Cache, own: Option<(&[f32], &[f32])>) -> Attended {
    let width = query.len() / heads;
    let mut output = vec![0.0; query.len()];
    let mut weights = vec![0.0; heads * cache.length];
    let mut own_score = [f32::NEG_INFINITY];
    for (head, mixed) in output.chunks_exact_mut(width).enumerate() {
        let here = head * width..(head + 1) * width;
        let block = head * width * cache.capacity..;
        let query = &query[here.clone()];
        let scores = &mut weights[head * cache.length..][..cache.length];
        score(query, &cache.keys[block.clone()], cache.capacity, scores);
        own_score[0] = own.map_or(f32::NEG_INFINITY, |(key, _)| dot(query, &key[here.clone()]));
        let total = exponentials(scores, &mut own_score[0]);
        for (weight, value) in scores
            .iter_mut()
            .zip(cache.values[block].chunks_exact(width))
        {
            *weight /= total;
            add_scaled(mixed, value, *weight);
        }
        if let Some((_, value)) = own {
            add_scaled(mixed, &value[here], own_score[0] / total);
        }
    }
    Attended {
        mixed: output,
        weights,
    }
}

/// Scores of the first `scores.len()` places of one head's transposed keys.
fn score(query: &[f32], keys: &[f32], capacity: usize, scores: &mut [f32]) {
    scores.fill(0.0);
    for (&factor, row) in query.iter().zip(keys.chunks_exact(capacity)) {
        add_scaled(scores, row, factor);
    }
}

/// Replaces scores by `exp(score - greatest)` and returns their sum.
fn exponentials(scores: &mut [f32], own: &mut f32) -> f32 {
    let greatest = scores.iter().copied().fold(*own, f32::max);
    let mut total = 0.0;
    for score in scores.iter_mut().chain([own]) {
        *score = (*score - greatest).exp();
        total += *score;
    }
    total
}

fn add_scaled(sum: &mut [f32], row: &[f32], factor: f32) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADS: usize = 2;
    const WIDTH: usize = 3;
    const CAPACITY: usize = 5;

    /// Numbers that look random but are the same everywhere.
    fn numbers(seed: u32, count: usize) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    /// The definition, place by place: softmax(q . k) . v for one head.
    fn slow(query: &[f32], places: &[(Vec<f32>, Vec<f32>)]) -> Vec<f32> {
        let weights: Vec<f32> = places.iter().map(|(k, _)| dot(query, k).exp()).collect();
        let total: f32 = weights.iter().sum();
        (0..WIDTH)
            .map(|i| {
                places
                    .iter()
                    .zip(&weights)
                    .map(|((_, v), w)| w * v[i])
                    .sum::<f32>()
                    / total
            })
            .collect()
    }

    fn check(length: usize, with_own: bool) {
        let query = numbers(1, HEADS * WIDTH);
        let keys = numbers(2, HEADS * WIDTH * CAPACITY);
        let values = numbers(3, HEADS * WIDTH * CAPACITY);
        let (own_key, own_value) = (numbers(4, HEADS * WIDTH), numbers(5, HEADS * WIDTH));
        let cache = Cache {
            keys: &keys,
            values: &values,
            capacity: CAPACITY,
            length,
        };
        let own = with_own.then_some((&own_key[..], &own_value[..]));
        let Attended {
            mixed: fast,
            weights,
        } = attend(&query, HEADS, &cache, own);
        for head in 0..HEADS {
            let here = head * WIDTH..(head + 1) * WIDTH;
            let key = |t| {
                (0..WIDTH)
                    .map(|i| keys[(head * WIDTH + i) * CAPACITY + t])
                    .collect()
            };
            let value = |t| values[(head * CAPACITY + t) * WIDTH..][..WIDTH].to_vec();
            let mut places: Vec<_> = (0..length).map(|t| (key(t), value(t))).collect();
            if with_own {
                places.push((
                    own_key[here.clone()].to_vec(),
                    own_value[here.clone()].to_vec(),
                ));
            }
            let total: f32 = weights[head * length..][..length].iter().sum();
            assert!(with_own && total < 1.0 || (total - 1.0).abs() < 1e-5);
            for (fast, slow) in fast[here.clone()].iter().zip(slow(&query[here], &places)) {
                assert!((fast - slow).abs() < 1e-5, "{fast} is not {slow}");
            }
        }
    }

    #[test]
    fn equals_the_definition() {
        check(CAPACITY, false);
        check(3, true);
    }

    #[test]
    fn the_first_token_attends_to_itself_alone() {
        check(0, true);
    }

    #[test]
    fn great_scores_do_not_overflow() {
        let (keys, values) = ([300.0, 299.0], [1.0, 3.0]);
        let cache = Cache {
            keys: &keys,
            values: &values,
            capacity: 2,
            length: 2,
        };
        let mixed = attend(&[1.0], 1, &cache, None).mixed[0];
        assert!((mixed - (1.0 + 2.0 / (1.0 + 1_f32.exp()))).abs() < 1e-5);
    }
}
