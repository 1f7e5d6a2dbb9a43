// Adds the signatures of the official JavaScript SDK 1.3.0 for the same cards to sdk.json:
//
//     npm install @a2a-js/sdk@1.3.0 jose && node make.mjs sdk.json
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const load = createRequire(join(process.cwd(), "package.json"));
const { canonicalizeAgentCard, generateAgentCardSignature } = load("@a2a-js/sdk");
const { exportJWK, generateKeyPair } = load("jose");

const path = process.argv[2];
const vectors = JSON.parse(readFileSync(path, "utf8"));
for (const card of vectors.cards) {
  card.canonical_js = canonicalizeAgentCard(card.pure);
}
const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
const sign = generateAgentCardSignature(privateKey, { alg: "ES256", typ: "JOSE", kid: "js" });
const card = await sign(vectors.cards[0].pure);
const jwk = { ...(await exportJWK(publicKey)), kid: "js", use: "sig" };
vectors.signed = vectors.signed.filter((signed) => signed.keys.keys[0].kid !== "js");
vectors.signed.push({ alg: "ES256", keys: { keys: [jwk] }, card });
vectors.made_with = "a2a-sdk 1.3.0 (Python), @a2a-js/sdk 1.3.0";
// One line for each vector: a change shows which one it is.
const lines = (list) => list.map((vector) => JSON.stringify(vector)).join(",\n");
const members = Object.entries(vectors).map(([name, value]) =>
  Array.isArray(value) ? `"${name}": [\n${lines(value)}\n]` : `"${name}": ${JSON.stringify(value)}`,
);
writeFileSync(path, `{\n${members.join(",\n")}\n}\n`);
