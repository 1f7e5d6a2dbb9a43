//! Search by embeddings, and its combination with the search by words.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::collector::DocSetCollector;
use tantivy::index::SegmentId;
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value as _};
use tantivy::{DocAddress, DocId, Searcher, SegmentReader, TantivyDocument, TantivyError, Term};

use crate::embeddings::{quantized, similarity};
use crate::error::Result;

/// The chunks that each search contributes.
pub(crate) const CANDIDATES: usize = 50;
/// How little the first places count more than later ones; the usual constant of reciprocal rank fusion.
const RANK: f32 = 60.0;

/// The vectors of the chunks of a segment.
type SegmentVectors = Arc<Vec<(DocId, Vec<u8>)>>;

/// The vectors of the index in memory, by segment. A segment never changes, apart from deletions.
#[derive(Debug)]
pub(crate) struct Vectors {
    /// The fields of a chunk's vector and of its source.
    vector: Field,
    source: Field,
    segments: Mutex<HashMap<SegmentId, SegmentVectors>>,
}

impl Vectors {
    pub(crate) fn new(vector: Field, source: Field) -> Self {
        Self { vector, source, segments: Mutex::default() }
    }

    /// The nearest chunks, nearest first.
    pub(crate) fn nearest(
        &self,
        searcher: &Searcher,
        vector: &[f32],
        source: Option<&str>,
    ) -> Result<Vec<DocAddress>> {
        let permitted: Option<HashSet<DocAddress>> = match source {
            Some(source) => {
                let term =
                    TermQuery::new(Term::from_field_text(self.source, source), IndexRecordOption::Basic);
                Some(searcher.search(&term, &DocSetCollector)?)
            }
            None => None,
        };
        let (vector, mut found) = (quantized(vector), Vec::new());
        for (ordinal, segment) in (0_u32..).zip(searcher.segment_readers()) {
            for (document, stored) in &*self.of_segment(segment)? {
                let address = DocAddress::new(ordinal, *document);
                let is_permitted = permitted.as_ref().is_none_or(|permitted| permitted.contains(&address));
                if is_permitted
                    && !segment.is_deleted(*document)
                    && let Some(similarity) = similarity(&vector, stored)
                {
                    found.push((similarity, address));
                }
            }
        }
        found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        found.truncate(CANDIDATES);
        self.forget(searcher);
        Ok(found.into_iter().map(|(_, address)| address).collect())
    }

    fn of_segment(&self, segment: &SegmentReader) -> Result<SegmentVectors> {
        let known =
            self.segments.lock().unwrap_or_else(PoisonError::into_inner).get(&segment.segment_id()).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let (store, mut vectors) = (segment.get_store_reader(1).map_err(TantivyError::from)?, Vec::new());
        for document in segment.doc_ids_alive() {
            let chunk: TantivyDocument = store.get(document)?;
            if let Some(vector) = chunk.get_first(self.vector).and_then(|value| value.as_bytes()) {
                vectors.push((document, vector.to_vec()));
            }
        }
        let vectors = Arc::new(vectors);
        let mut all = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(segment.segment_id(), Arc::clone(&vectors));
        Ok(vectors)
    }

    /// Forgets segments that are merged.
    fn forget(&self, searcher: &Searcher) {
        let current: HashSet<SegmentId> =
            searcher.segment_readers().iter().map(SegmentReader::segment_id).collect();
        self.segments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|segment, _| current.contains(segment));
    }
}

/// Combines rankings by reciprocal rank fusion: a chunk that several rankings have comes before one that a single one has.
pub(crate) fn fused(rankings: [&[DocAddress]; 2]) -> Vec<(f32, DocAddress)> {
    let mut scores: HashMap<DocAddress, f32> = HashMap::new();
    for ranking in rankings {
        for (rank, address) in (1_u16..).zip(ranking) {
            *scores.entry(*address).or_default() += 1.0 / (RANK + f32::from(rank));
        }
    }
    let mut fused: Vec<(f32, DocAddress)> =
        scores.into_iter().map(|(address, score)| (score, address)).collect();
    fused.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.cmp(b)));
    fused
}
