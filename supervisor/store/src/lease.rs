//! The leases of a store that only one process uses.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::backend::Store;
use crate::error::StoreError;
use crate::types::{Commit, Lease, LeaseTerm};

/// The holders of the leases of a store that only one process uses.
///
/// They are in memory: when the store is opened again, no other process can be alive, so all leases are void and recovery does
/// not wait. Terms are measured by the monotonic clock, so a jump of the wall clock neither ends nor extends a lease.
#[derive(Debug, Default)]
pub(crate) struct LeaseTable {
    holders: Mutex<HashMap<String, Holder>>,
    /// The task that has the turn of a conversation, by conversation.
    turns: Mutex<HashMap<String, String>>,
    claims: Mutex<Claims>,
}

#[derive(Debug, Default)]
struct Claims {
    /// The owners, and the ends of their terms.
    terms: HashMap<String, (String, Instant)>,
    /// The number of claims at which those that have ended are removed.
    full: usize,
}

#[derive(Debug)]
struct Holder {
    owner: String,
    /// `None` until the store has written the token.
    token: Option<u64>,
    until: Instant,
}

impl LeaseTable {
    /// Acquires a lease whose token `write` stores.
    pub(crate) async fn acquire(
        &self,
        task: &str,
        term: &LeaseTerm,
        write: impl AsyncFnOnce() -> Result<Lease, StoreError>,
    ) -> Result<Lease, StoreError> {
        self.reserve(task, term)?;
        let acquired = write().await;
        self.settle(task, term, acquired.as_ref().ok().map(|lease| lease.token));
        acquired
    }

    /// Writes a commit, with the lease that it takes or releases.
    pub(crate) async fn commit(
        &self,
        commit: Commit,
        write: impl AsyncFnOnce(Commit) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let created = commit.create.clone().zip(commit.task.as_ref().map(|record| record.id.clone()));
        let context = commit.context.clone();
        let released = commit.fence.as_ref().filter(|fence| fence.release);
        let released = released.map(|fence| (fence.task.clone(), fence.token));
        write(commit).await?;
        if let Some((LeaseTerm { owner, ttl }, task)) = created {
            let until = Instant::now() + ttl;
            self.lock().entry(task.clone()).or_insert(Holder { owner, token: Some(0), until });
            self.turns().entry(context.clone()).or_insert(task);
        }
        if let Some((task, token)) = released {
            self.release(&task, token);
            let mut turns = self.turns();
            if turns.get(&context) == Some(&task) {
                turns.remove(&context);
            }
        }
        Ok(())
    }

    /// Whether the term of an owner lasts.
    pub(crate) fn is_held(&self, task: &str) -> bool {
        self.lock().get(task).is_some_and(|holder| holder.until > Instant::now())
    }

    /// Gives the turn of a conversation to a task, unless another one has it that has an owner or is under way.
    pub(crate) async fn take_turn(
        &self,
        store: &dyn Store,
        context: &str,
        task: &str,
    ) -> Result<Option<String>, StoreError> {
        loop {
            let found = self.turns().get(context).cloned();
            if let Some(other) = found.clone().filter(|other| other != task)
                && (self.is_held(&other)
                    || store.task(&other).await?.is_some_and(|record| record.phase.is_under_way()))
            {
                return Ok(Some(other));
            }
            let mut turns = self.turns();
            if turns.get(context) == found.as_ref() {
                turns.insert(context.to_owned(), task.to_owned());
                return Ok(None);
            }
        }
    }

    /// Takes the place of the holder, unless the term of another owner has not ended.
    fn reserve(&self, task: &str, term: &LeaseTerm) -> Result<(), StoreError> {
        let mut holders = self.lock();
        let now = Instant::now();
        if let Some(holder) = holders.get(task)
            && holder.owner != term.owner
            && holder.until > now
        {
            return Err(taken(task, holder, now));
        }
        let holder = Holder { owner: term.owner.clone(), token: None, until: now + term.ttl };
        holders.insert(task.to_owned(), holder);
        Ok(())
    }

    /// Notes what became of a reservation: the token that the store has written, or `None` if it has written none.
    fn settle(&self, task: &str, term: &LeaseTerm, token: Option<u64>) {
        let mut holders = self.lock();
        let Some(holder) = holders.get_mut(task).filter(|holder| holder.owner == term.owner) else { return };
        match token {
            // Of two acquisitions by one owner, the later one counts.
            Some(token) => holder.token = holder.token.max(Some(token)),
            None if holder.token.is_none() => drop(holders.remove(task)),
            None => {}
        }
    }

    pub(crate) fn renew(&self, task: &str, token: u64, ttl: Duration) -> Result<(), StoreError> {
        match self.lock().get_mut(task).filter(|holder| holder.token == Some(token)) {
            Some(holder) => holder.until = Instant::now() + ttl,
            None => return Err(StoreError::LeaseLost { task: task.to_owned() }),
        }
        Ok(())
    }

    pub(crate) fn release(&self, task: &str, token: u64) {
        let mut holders = self.lock();
        if holders.get(task).is_some_and(|holder| holder.token == Some(token)) {
            holders.remove(task);
        }
    }

    /// Takes or keeps a claim, unless the term of another owner has not ended.
    pub(crate) fn claim(&self, what: &str, term: &LeaseTerm) -> bool {
        let (mut claims, now) = (self.claims(), Instant::now());
        let is_of_another = |(owner, until): &(String, Instant)| *until > now && *owner != term.owner;
        if claims.terms.get(what).is_some_and(is_of_another) {
            return false;
        }
        if claims.terms.len() >= claims.full {
            claims.terms.retain(|_, (_, until)| *until > now);
            claims.full = 2 * claims.terms.len() + 16;
        }
        claims.terms.insert(what.to_owned(), (term.owner.clone(), now + term.ttl));
        true
    }

    pub(crate) fn end_claim(&self, what: &str, owner: &str) {
        let mut claims = self.claims();
        if claims.terms.get(what).is_some_and(|(holder, _)| holder == owner) {
            claims.terms.remove(what);
        }
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Holder>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn taken(task: &str, holder: &Holder, now: Instant) -> StoreError {
    let left = jiff::SignedDuration::try_from(holder.until - now).unwrap_or(jiff::SignedDuration::MAX);
    let until = Timestamp::now().saturating_add(left).unwrap_or(Timestamp::MAX);
    StoreError::LeaseTaken { task: task.to_owned(), owner: holder.owner.clone(), until }
}
