//! Cosine similarity of text embeddings: what meaning alone finds.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use anyhow::Result;

use super::{Asked, PoolRecord, Ranked, Retriever, best_first};

/// A model that embeds text.
pub trait Embed {
    /// The embedding of `text`, L2-normalised, always of the same length.
    fn embed(&mut self, text: &str) -> Result<Vec<f32>>;
}

/// An embedder that several retrievers share, so that each record is embedded
/// once in a run. Questions are embedded each time: that is part of their
/// latency.
#[derive(Clone)]
pub struct SharedEmbedder(Rc<RefCell<Shared>>);

struct Shared {
    model: Box<dyn Embed>,
    documents: HashMap<String, Rc<[f32]>>,
}

impl SharedEmbedder {
    /// Shares `model`.
    pub fn new(model: Box<dyn Embed>) -> Self {
        Self(Rc::new(RefCell::new(Shared {
            model,
            documents: HashMap::new(),
        })))
    }

    /// The embedding of a record's text, computed at most once.
    pub fn document(&self, text: &str) -> Result<Rc<[f32]>> {
        let mut shared = self.0.borrow_mut();
        if let Some(known) = shared.documents.get(text) {
            return Ok(Rc::clone(known));
        }
        let embedding: Rc<[f32]> = shared.model.embed(text)?.into();
        shared
            .documents
            .insert(text.to_owned(), Rc::clone(&embedding));
        Ok(embedding)
    }

    /// The embedding of a question's text.
    pub fn question(&self, text: &str) -> Result<Vec<f32>> {
        self.0.borrow_mut().model.embed(text)
    }
}

/// Exhaustive nearest-neighbour search over the records as documents.
pub struct Dense {
    embedder: SharedEmbedder,
    rows: Vec<Rc<[f32]>>,
}

impl Dense {
    /// Searches with `embedder`.
    pub fn new(embedder: SharedEmbedder) -> Self {
        Self {
            embedder,
            rows: Vec::new(),
        }
    }
}

impl Retriever for Dense {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        let rows = records
            .iter()
            .map(|record| self.embedder.document(&record.document()));
        self.rows = rows.collect::<Result<_>>()?;
        Ok(())
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        let query = self.embedder.question(&question.question.text)?;
        let cosine = |row: &Rc<[f32]>| row.iter().zip(&query).map(|(a, b)| a * b).sum();
        let mut ranked: Vec<Ranked> = self.rows.iter().map(cosine).enumerate().collect();
        best_first(&mut ranked);
        Ok(ranked)
    }
}
