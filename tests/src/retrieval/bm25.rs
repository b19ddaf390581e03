//! BM25 with English stemming: what words alone find.

use anyhow::Result;
use bm25::{DefaultTokenizer, Embedder, EmbedderBuilder, Language, Scorer};

use super::{Asked, PoolRecord, Ranked, Retriever, best_first};

/// Okapi BM25 (k1 = 1.2, b = 0.75) over the records as documents.
#[derive(Default)]
pub struct Bm25 {
    index: Option<(Embedder, Scorer<usize>)>,
}

impl Retriever for Bm25 {
    fn index(&mut self, records: &[PoolRecord<'_>]) -> Result<()> {
        let documents: Vec<String> = records.iter().map(PoolRecord::document).collect();
        let corpus: Vec<&str> = documents.iter().map(String::as_str).collect();
        let tokenizer = DefaultTokenizer::new(Language::English);
        let embedder: Embedder =
            EmbedderBuilder::with_tokenizer_and_fit_to_corpus(tokenizer, &corpus).build();
        let mut scorer = Scorer::new();
        for (place, document) in corpus.into_iter().enumerate() {
            scorer.upsert(&place, embedder.embed(document));
        }
        self.index = Some((embedder, scorer));
        Ok(())
    }

    fn rank(&mut self, question: &Asked<'_>) -> Result<Vec<Ranked>> {
        let Some((embedder, scorer)) = &self.index else {
            return Ok(Vec::new());
        };
        let matches = scorer.matches(&embedder.embed(&question.question.text));
        let mut ranked: Vec<Ranked> = matches
            .into_iter()
            .map(|document| (document.id, document.score))
            .collect();
        best_first(&mut ranked);
        Ok(ranked)
    }
}
