// Files and batches as OpenAI's documentation has them. Prints what it saw as one line of JSON.
// Usage: node batches.mjs BASE_URL FILE
import fs from "fs";
import OpenAI, { toFile } from "openai";

const [baseURL, path] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none-is-needed", maxRetries: 0 });
const seen = {};

const models = [];
for await (const model of client.models.list()) models.push(model.id);
seen.models = models;

const file = await client.files.create({
  file: fs.createReadStream(path),
  purpose: "batch",
  expires_after: { anchor: "created_at", seconds: 3600 },
});
seen.file = {
  filename: file.filename,
  purpose: file.purpose,
  bytes: file.bytes,
  kept_s: file.expires_at - file.created_at,
};

let batch = await client.batches.create({
  input_file_id: file.id,
  endpoint: "/v1/chat/completions",
  completion_window: "24h",
  metadata: { team: "search" },
});
const deadline = Date.now() + 60_000;
while (!["completed", "failed", "cancelled"].includes(batch.status)) {
  if (Date.now() > deadline) throw new Error(`The batch is still ${batch.status}.`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  batch = await client.batches.retrieve(batch.id);
}
seen.batch = { status: batch.status, counts: batch.request_counts, metadata: batch.metadata };

const answers = await (await client.files.content(batch.output_file_id)).text();
seen.answers = Object.fromEntries(
  answers.trim().split("\n").map(JSON.parse).map((line) => [line.custom_id, line.response.body.choices[0].message.content]),
);

const listed = [];
for await (const one of client.batches.list({ limit: 1 })) listed.push(one.id);
seen.listed = listed.includes(batch.id);

const again = await client.files.create({ file: await toFile(fs.readFileSync(path), "again.jsonl"), purpose: "batch" });
seen.deleted = (await client.files.delete(again.id)).deleted;
seen.missing = await client.files.retrieve(again.id).catch((error) => [error.constructor.name, error.status]);

console.log(JSON.stringify(seen));
