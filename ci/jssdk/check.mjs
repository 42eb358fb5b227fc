// Holds one conversation with the emulator through each of the vendors' own JavaScript clients, streamed and blocking, and prints as JSON what came out of each: node check.mjs http://127.0.0.1:PORT
//
// The words for stop reasons are made the same here; texts, calls, arguments and token counts are printed as the client gives them. Whether they are equal is for the reader to say.
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";

const url = process.argv[2];
const question = "What does Nine Winters cost?";
const refused = "Say too many";
const system = "Be exact.";
const description = "Reads a file";
const schema = {
  type: "object",
  properties: { path: { type: "string" }, lines: { type: "array", items: { type: "integer" } } },
  required: ["path"],
};

// result is what the tool answers: the path that it was asked for, so that a lost argument shows in the next request.
const result = (args) => `contents of ${args.path}`;

const openai = new OpenAI({ apiKey: "emulator", baseURL: `${url}/v1`, maxRetries: 0 });
const anthropic = new Anthropic({ apiKey: "emulator", baseURL: url, maxRetries: 0 });
const google = new GoogleGenAI({ apiKey: "emulator", httpOptions: { baseUrl: url } });

const stops = {
  stop: "end", completed: "end", end_turn: "end", STOP: "end",
  tool_calls: "tool_calls", tool_use: "tool_calls",
  length: "length", max_tokens: "length", max_output_tokens: "length", MAX_TOKENS: "length",
};

// stop names a stop reason as all clients do. Those that say nothing of calls end with them.
function stop(word, calls) {
  const said = stops[word] ?? `unknown: ${word}`;
  return said === "end" && calls.length > 0 ? "tool_calls" : said;
}

// Each client is a function that takes the user's text and whether to stream, and returns a function for the next turn. That one takes the results of the calls before, in their order.

function chat(text, streamed) {
  const messages = [{ role: "system", content: system }, { role: "user", content: text }];
  let ids = [];
  return async (results) => {
    results.forEach((content, i) => messages.push({ role: "tool", tool_call_id: ids[i], content }));
    const body = { model: "gpt-4o-mini", messages, tools: [{ type: "function", function: { name: "read_file", description, parameters: schema } }] };
    const reply = streamed
      ? await openai.chat.completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      : await openai.chat.completions.create(body);
    const { message, finish_reason } = reply.choices[0];
    messages.push({ role: "assistant", content: message.content, ...(message.tool_calls?.length ? { tool_calls: message.tool_calls } : {}) });
    ids = (message.tool_calls ?? []).map((c) => c.id);
    const calls = (message.tool_calls ?? []).map((c) => ({ name: c.function.name, args: JSON.parse(c.function.arguments) }));
    return {
      text: message.content ?? "", calls, stop: stop(finish_reason, calls),
      usage: { input: reply.usage.prompt_tokens, cached: reply.usage.prompt_tokens_details.cached_tokens, output: reply.usage.completion_tokens },
    };
  };
}

function responses(text, streamed) {
  const input = [{ role: "user", content: text }];
  let ids = [];
  return async (results) => {
    results.forEach((output, i) => input.push({ type: "function_call_output", call_id: ids[i], output }));
    const body = { model: "gpt-4o-mini", instructions: system, input, store: false, tools: [{ type: "function", name: "read_file", description, parameters: schema, strict: false }] };
    const reply = streamed ? await openai.responses.stream(body).finalResponse() : await openai.responses.create(body);
    input.push(...reply.output);
    const made = reply.output.filter((item) => item.type === "function_call");
    ids = made.map((c) => c.call_id);
    const calls = made.map((c) => ({ name: c.name, args: JSON.parse(c.arguments) }));
    return {
      text: reply.output_text, calls, stop: stop(reply.incomplete_details?.reason ?? reply.status, calls),
      usage: { input: reply.usage.input_tokens, cached: reply.usage.input_tokens_details.cached_tokens, output: reply.usage.output_tokens },
    };
  };
}

function messages(text, streamed) {
  const list = [{ role: "user", content: text }];
  let ids = [];
  return async (results) => {
    if (results.length > 0) {
      list.push({ role: "user", content: results.map((content, i) => ({ type: "tool_result", tool_use_id: ids[i], content })) });
    }
    const body = { model: "claude-haiku-4-5", max_tokens: 1024, system, messages: list, tools: [{ name: "read_file", description, input_schema: schema }] };
    const reply = streamed ? await anthropic.messages.stream(body).finalMessage() : await anthropic.messages.create(body);
    list.push({ role: "assistant", content: reply.content });
    const made = reply.content.filter((block) => block.type === "tool_use");
    ids = made.map((block) => block.id);
    const calls = made.map((block) => ({ name: block.name, args: block.input }));
    return {
      text: reply.content.filter((block) => block.type === "text").map((block) => block.text).join(""), calls, stop: stop(reply.stop_reason, calls),
      usage: { input: reply.usage.input_tokens + (reply.usage.cache_read_input_tokens ?? 0), cached: reply.usage.cache_read_input_tokens ?? 0, output: reply.usage.output_tokens },
    };
  };
}

function gemini(text, streamed) {
  const contents = [{ role: "user", parts: [{ text }] }];
  let made = [];
  return async (results) => {
    if (results.length > 0) {
      contents.push({ role: "user", parts: results.map((r, i) => ({ functionResponse: { id: made[i].id, name: made[i].name, response: { result: r } } })) });
    }
    const body = { model: "gemini-2.5-flash", contents, config: { systemInstruction: system, tools: [{ functionDeclarations: [{ name: "read_file", description, parametersJsonSchema: schema }] }] } };
    const replies = [];
    if (streamed) {
      for await (const piece of await google.models.generateContentStream(body)) {
        replies.push(piece);
      }
    } else {
      replies.push(await google.models.generateContent(body));
    }
    const parts = replies.flatMap((r) => r.candidates?.[0]?.content?.parts ?? []);
    contents.push({ role: "model", parts });
    made = parts.filter((p) => p.functionCall).map((p) => p.functionCall);
    const calls = made.map((c) => ({ name: c.name, args: c.args ?? {} }));
    const usage = replies.at(-1).usageMetadata;
    return {
      text: parts.filter((p) => p.text && !p.thought).map((p) => p.text).join(""), calls, stop: stop(replies.at(-1).candidates[0].finishReason, calls),
      usage: { input: usage.promptTokenCount, cached: usage.cachedContentTokenCount ?? 0, output: usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0) },
    };
  };
}

// converse runs the tool loop to its end.
async function converse(client, streamed) {
  const next = client(question, streamed);
  const turns = [];
  for (let results = []; ; ) {
    const turn = await next(results);
    turns.push(turn);
    if (turn.calls.length === 0 || turns.length > 10) {
      return turns;
    }
    results = turn.calls.map((c) => result(c.args));
  }
}

// status is what a client says of a request that the vendor refuses.
async function status(client, streamed) {
  try {
    await client(refused, streamed)([]);
    return "no error";
  } catch (error) {
    return error.status ?? String(error);
  }
}

const clients = { "openai chat": chat, "openai responses": responses, anthropic: messages, gemini };
const out = [];
for (const [name, client] of Object.entries(clients)) {
  for (const streamed of [false, true]) {
    const told = { client: name, streamed };
    try {
      told.turns = await converse(client, streamed);
      told.status = await status(client, streamed);
    } catch (error) {
      told.error = String(error.stack ?? error);
    }
    out.push(told);
  }
}
console.log(JSON.stringify(out));
