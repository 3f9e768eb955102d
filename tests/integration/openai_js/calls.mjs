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

// A whole conversation with a tool, in both APIs, with usual fields in the order of the documentation.
const parameters = { type: "object", properties: { city: { type: "string" } } };
const asked = await client.chat.completions.create({
  model,
  messages,
  metadata: { team: "search" },
  store: false,
  user: "u",
  tools: [{ type: "function", function: { name: "weather", parameters } }],
  tool_choice: "auto",
});
const called = asked.choices[0].message;
const told = await client.chat.completions.create({
  model,
  messages: [...messages, called, { role: "tool", tool_call_id: called.tool_calls[0].id, content: "sunny" }],
  tools: [{ type: "function", function: { name: "weather", parameters } }],
});
const tools = [{ type: "function", name: "weather", parameters, strict: false }];
const first = await client.responses.create({ model, input: messages, store: false, tools, truncation: "disabled" });
const call = first.output.find((item) => item.type === "function_call");
const output = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
const second = await client.responses.create({ model, input: [...messages, ...first.output, output], tools });
seen.tools = [asked.choices[0].finish_reason, told.choices[0].finish_reason, call.name, second.status];

const helper = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
const helped = await helper.finalChatCompletion();
seen.helper = [helped.choices[0].message.content, helped.usage.total_tokens > 0];

const raw = await client.chat.completions.create({ model, messages }).withResponse();
seen.raw = raw.response.headers.get("x-request-id") === raw.request_id;

const fault = (error) => [error.constructor.name, error.status, error.param];
seen.refused = await client.chat.completions.create({ model, messages: [] }).catch(fault);
seen.completions = await client.completions.create({ model, prompt: "a" }).catch(fault);

const going = new AbortController();
const stream = await client.chat.completions.create({ model, messages, stream: true }, { signal: going.signal });
for await (const chunk of stream) going.abort();
seen.aborted = stream.controller.signal.aborted;

console.log(JSON.stringify(seen));
