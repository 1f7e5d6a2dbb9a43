use super::*;

fn reason(uri: &str) -> String {
    let options = MongodbOptions { uri: uri.to_owned(), ..MongodbOptions::default() };
    parse(&options).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn an_unusable_uri_is_refused_without_its_password() {
    for (uri, wanted) in [
        ("", "must begin with mongodb://"),
        ("redis://u:s3cret@a:1", "must begin with mongodb://"),
        ("mongodb://u:s3cret@x@a:1", "cannot be read"),
        ("mongodb://u:s3cret@a:port", "cannot be read"),
        ("mongodb://u:s3cret@a:1/?w=s3cret&journal=perhaps", "cannot be read"),
    ] {
        let found = reason(uri);
        assert!(found.contains(wanted) && !found.contains("s3cret"), "{uri}: {found}");
    }
    assert_eq!(reason("mongodb://user:s3cret@a:1,b:2/?replicaSet=rs&tls=true"), "");
    assert_eq!(reason("mongodb+srv://user:s3cret@cluster.example.com/"), "");
}

#[test]
fn errors_name_the_members_without_the_password() {
    let uri = "mongodb://user:s3cret@a:1,b:2".to_owned();
    let connection = Connection::new(&MongodbOptions { uri, ..MongodbOptions::default() }).unwrap();
    assert_eq!(connection.servers(), "a:1,b:2");
}

#[test]
fn a_standalone_server_is_recognized() {
    assert!(is_standalone(&doc! { "isWritablePrimary": true }));
    assert!(!is_standalone(&doc! { "setName": "rs" }));
    assert!(!is_standalone(&doc! { "msg": "isdbgrid" }));
}
