// Chat completions and responses as OpenAI's documentation has them. Prints what it saw as one line of JSON.
// Usage: node calls.mjs BASE_URL MODEL
import OpenAI from "openai";

const [baseURL, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "none-is-needed", maxRetries: 0 });
const messages = [
  { role: "developer", content: "Be brief." },
  { role: "user", content: "hello there" },
];
const seen = {};

const chat = await client.chat.completions.create({ model, messages, max_completion_tokens: 50 });
seen.chat = { content: chat.choices[0].message.content, finish: chat.choices[0].finish_reason, object: chat.object };

let content = "";
let usage = null;
const chunks = await client.chat.completions.create({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of chunks) {
  content += chunk.choices[0]?.delta?.content ?? "";
  usage = chunk.usage ?? usage;
}
seen.stream = { content, counted: usage.total_tokens > 0 };

const response = await client.responses.create({ model, instructions: "Be brief.", input: "hello there" });
seen.response = { text: response.output_text, status: response.status };

const events = client.responses.stream({ model, input: [{ role: "user", content: "hello there" }] });
let deltas = "";
events.on("response.output_text.delta", (event) => (deltas += event.delta));
seen.events = { deltas, text: (await events.finalResponse()).output_text };
seen.events.deltas = deltas;

seen.wrong = await client.chat.completions
  .create({ model: "nowhere", messages })
  .catch((error) => [error.constructor.name, error.status]);

console.log(JSON.stringify(seen));
