//! Episodes, metrics, the demo and the evaluations.
