use super::*;
use crate::samples::saved;
use crate::sqlite::open;

fn job(context: &str, size: usize) -> Job {
    let prepared = PreparedCommit::new(saved(context, &"x".repeat(size)), Timestamp::UNIX_EPOCH).unwrap();
    Job { work: Work::Commit(Box::new(prepared)), done: oneshot::channel().0 }
}

fn contexts(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("SELECT context FROM conversations ORDER BY context").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

/// However SQLite reacts to a full disk, what it acknowledges is what is there.
#[test]
fn a_full_disk_costs_only_what_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("caipe.db");
    let _lock = open::prepare(&path).unwrap();
    let mut connection = open::for_writing(&path).unwrap();
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    connection.query_row(&format!("PRAGMA max_page_count = {}", pages + 8), [], |_| Ok(())).unwrap();
    for sizes in [[10, 100_000, 10], [100_000, 10, 10], [10, 10, 100_000]] {
        let group: Vec<_> =
            ["a", "b", "c"].into_iter().zip(sizes).map(|(context, size)| job(context, size)).collect();
        let outcomes = transact(&mut connection, &group);
        assert!(connection.is_autocommit(), "a transaction was left open");
        let fine = |index: usize| outcomes.as_ref().is_ok_and(|outcomes| outcomes[index].is_ok());
        let acknowledged: Vec<_> =
            (0..3).filter(|index| fine(*index)).map(|index| ["a", "b", "c"][index]).collect();
        assert_eq!(contexts(&connection), acknowledged, "{sizes:?}");
        assert!(acknowledged.len() < 3, "the disk was not full");
        connection.execute("DELETE FROM conversations", []).unwrap();
    }
    let small = transact(&mut connection, &[job("d", 10)]).unwrap();
    assert!(small.iter().all(Result::is_ok));
    assert_eq!(contexts(&connection), ["d"]);
}

#[test]
fn a_refusal_is_reported_with_what_was_tried() {
    let error = rusqlite::Error::InvalidQuery;
    let reported = translate(Path::new("/data/caipe.db"), Work::Close.action(), &error);
    assert!(
        reported.to_string().starts_with("failed to close in the sqlite store: /data/caipe.db: "),
        "{reported}"
    );
}
