//! Signed cards: our own, those of the official SDKs, and forged ones.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caipe_a2a::card::{self, CardBuilder, CardSigner, Coverage, KeySet, SignatureError};
use caipe_a2a::model::{AgentCard, AgentSkill};
use serde_json::{Value, json};

use crate::vectors::vectors;

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

pub(crate) fn p256() -> String {
    pem(EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .unwrap()
        .as_ref())
}

pub(crate) fn signer(pem: &str) -> CardSigner {
    CardSigner::from_pem(pem.as_bytes(), Some("key-1"), Some("https://never.example/jwks.json")).unwrap()
}

pub(crate) fn keys(signer: &CardSigner) -> KeySet {
    KeySet::parse(&serde_json::to_vec(&signer.key_set().unwrap()).unwrap()).unwrap()
}

fn card() -> AgentCard {
    CardBuilder::new("Signed", "Ein Gruß 😀", "https://a.example/", "1")
        .skill(AgentSkill::new("s", "S", "does", ["t"]))
        .bearer("a token")
        .rest()
        .build()
}

fn documents(card: &AgentCard) -> [Value; 2] {
    [false, true].map(|merged| serde_json::from_slice(&card::document(card, merged).unwrap()).unwrap())
}

fn verify(document: &Value, keys: &KeySet) -> Result<card::Verified, SignatureError> {
    card::verify(document.to_string().as_bytes(), keys)
}

#[test]
fn both_documents_of_a_signed_card_verify_as_a_whole() {
    let rsa = aws_lc_rs::rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
    let rsa = aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&rsa).unwrap();
    let p384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &SystemRandom::new()).unwrap();
    // The form that openssl writes.
    let ed = Ed25519KeyPair::generate().unwrap().to_pkcs8v1().unwrap();
    for pem in [p256(), pem(p384.as_ref()), pem(ed.as_ref()), pem(rsa.as_ref())] {
        let signer = signer(&pem);
        let mut card = card();
        card::sign(&mut card, &signer).unwrap();
        for document in documents(&card) {
            let verified = verify(&document, &keys(&signer)).unwrap();
            assert_eq!(verified, card::Verified { kid: "key-1".to_owned(), coverage: Coverage::Document });
            // Read and written again by a client of 1.0 only, as the SDKs do.
            let known = serde_json::to_value(card::parse(document.to_string().as_bytes()).unwrap()).unwrap();
            assert!(verify(&known, &keys(&signer)).is_ok());
        }
    }
}

#[test]
fn a_card_is_signed_in_each_form_that_differs() {
    let signer = signer(&p256());
    let mut with_needs = card();
    card::sign(&mut with_needs, &signer).unwrap();
    assert_eq!(with_needs.signatures.len(), 3, "pure, merged, and without the empty list of scopes");
    let mut without = card();
    without.security_requirements.clear();
    card::sign(&mut without, &signer).unwrap();
    assert_eq!(without.signatures.len(), 2, "pure and merged");
    let header = &without.signatures[0].protected;
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).unwrap();
    let header: Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(
        header,
        json!({"alg": "ES256", "typ": "JOSE", "kid": "key-1", "jku": "https://never.example/jwks.json"})
    );
}

#[test]
fn cards_signed_by_the_official_sdks_verify() {
    for vector in vectors().signed {
        let keys = KeySet::parse(vector.keys.to_string().as_bytes()).unwrap();
        assert_eq!(keys.len(), 1, "{}", vector.alg);
        let verified = verify(&vector.card, &keys).unwrap_or_else(|error| panic!("{}: {error}", vector.alg));
        assert_eq!(verified.coverage, Coverage::Schema);
        let mut changed = vector.card.clone();
        changed["skills"][0]["name"] = json!("changed");
        assert_eq!(verify(&changed, &keys), Err(SignatureError::Invalid));
    }
}

/// The parser reads a field under its original name too, so a signature must cover that name.
#[test]
fn a_field_added_under_its_original_name_breaks_an_sdk_signature() {
    let additions: [(&str, Change); 4] = [
        ("icon_url", |card| card["icon_url"] = json!("https://evil.example/")),
        ("security_schemes", |card| {
            card["security_schemes"] = json!({"x": {"http_auth_security_scheme": {"scheme": "x"}}});
        }),
        ("push_notifications", |card| card["capabilities"]["push_notifications"] = json!(true)),
        ("input_modes", |card| card["skills"][0]["input_modes"] = json!(["x"])),
    ];
    for vector in vectors().signed {
        let keys = KeySet::parse(vector.keys.to_string().as_bytes()).unwrap();
        for (field, add) in additions {
            let mut changed = vector.card.clone();
            add(&mut changed);
            assert_eq!(verify(&changed, &keys), Err(SignatureError::Invalid), "{field}");
        }
        let mut unknown = vector.card.clone();
        unknown["no_such_field"] = json!(1);
        assert!(verify(&unknown, &keys).is_ok(), "the SDKs do not sign unknown members");
    }
}

type Change = fn(&mut Value);

#[test]
fn whoever_meddles_is_found_out() {
    let signer = signer(&p256());
    let mut card = card();
    card::sign(&mut card, &signer).unwrap();
    let keys = keys(&signer);
    let [pure, _] = documents(&card);
    let changes: [(&str, Change); 6] = [
        ("name", |card| card["name"] = json!("Other")),
        ("url", |card| card["supportedInterfaces"][0]["url"] = json!("https://evil.example/")),
        ("required member gone", |card| drop(card.as_object_mut().unwrap().remove("version"))),
        ("skill more", |card| card["skills"].as_array_mut().unwrap().push(json!({"id": "x"}))),
        ("all interfaces gone", |card| {
            card["supportedInterfaces"] = json!([]);
            card["url"] = json!("https://evil.example/");
        }),
        ("algorithm none", |card| {
            let none =
                base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"key-1"}"#);
            card["signatures"] = json!([{"protected": none, "signature": ""}]);
        }),
    ];
    for (what, change) in changes {
        let mut forged = pure.clone();
        change(&mut forged);
        assert_eq!(verify(&forged, &keys), Err(SignatureError::Invalid), "{what}");
    }
    // A member that 1.0 does not know is seen, and told: the whole document does not verify any more.
    let mut more = pure.clone();
    more["surprise"] = json!(1);
    assert_eq!(verify(&more, &keys).unwrap().coverage, Coverage::Schema);
}

#[test]
fn keys_that_are_not_trusted_are_named_and_bad_ones_left_out() {
    let mut card = card();
    card::sign(&mut card, &signer(&p256())).unwrap();
    let [pure, _] = documents(&card);
    let error = verify(&pure, &KeySet::default()).unwrap_err();
    assert!(error.to_string().contains("key-1"), "{error}");
    card.signatures.clear();
    assert_eq!(verify(&documents(&card)[0], &KeySet::default()), Err(SignatureError::Unsigned));
    let odd = json!({"keys": [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared"}, {"kty": "EC", "kid": "broken"}, 7,
        {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA", "kid": "curve"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "encrypts", "use": "enc"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB"}]});
    assert!(KeySet::parse(odd.to_string().as_bytes()).unwrap().is_empty());
    for none in ["", "[]", "{}", "<html>"] {
        assert!(matches!(KeySet::parse(none.as_bytes()), Err(SignatureError::Keys(_))), "{none}");
    }
}

#[test]
fn a_key_that_cannot_sign_is_refused_without_being_shown() {
    let sec1 = p256().replace("PRIVATE", "EC PRIVATE");
    for pem in ["", "no key", sec1.as_str(), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
    {
        let error = CardSigner::from_pem(pem.as_bytes(), None, None).unwrap_err().to_string();
        assert!(error.contains("PKCS#8"), "{error}");
    }
    let unnamed = p256();
    let kid = |pem: &str| CardSigner::from_pem(pem.as_bytes(), None, None).unwrap().kid().to_owned();
    assert_eq!(kid(&unnamed), kid(&unnamed));
    assert_ne!(kid(&unnamed), kid(&p256()), "a key without a name has that of its thumbprint");
    let shown = format!("{:?}", signer(&p256()));
    assert!(shown.contains("key-1") && shown.contains("ES256") && shown.len() < 100, "{shown}");
}
