// The event stream that all pages of a browser share. It runs in a SharedWorker; without one, in one of the pages.
"use strict";

// The server sends at least every second.
const SILENT_MS = 3000;
const AGAIN_MS = 1000;
// Pages hear this often that nothing has changed.
const QUIET_MS = 2000;
// Hidden pages may run their timers once a minute only.
const FORGET_MS = 200_000;

class LiveStream {
  constructor(name) {
    this.channel = new BroadcastChannel(name);
    this.channel.onmessage = ({ data }) => this.hear(data);
    // Per page: the jobs it follows, and when it last said so.
    this.pages = new Map();
    // What was last sent, whole: the frame under "", jobs by their ids.
    this.kept = new Map();
    this.followed = null;
    this.pulsed = 0;
    this.channel.postMessage({ ask: true });
    setInterval(() => this.forget(), FORGET_MS / 4);
  }

  hear({ page, jobs, again, bye }) {
    if (!page) return;
    if (bye) this.pages.delete(page);
    else this.pages.set(page, { jobs, at: Date.now() });
    if (again && this.kept.has("")) {
      this.channel.postMessage({ to: page, pulse: this.kept.get("") });
      for (const job of jobs) if (this.kept.has(job)) this.channel.postMessage({ to: page, ...this.kept.get(job) });
    }
    this.settle();
  }

  forget() {
    for (const [page, { at }] of this.pages) if (Date.now() - at > FORGET_MS) this.pages.delete(page);
    this.settle();
  }

  // Pages come and go together: one new connection is enough for all of them.
  settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => {
      const jobs = [...new Set([...this.pages.values()].flatMap((page) => page.jobs))].sort();
      for (const job of this.kept.keys()) if (job && !jobs.includes(job)) this.kept.delete(job);
      const followed = this.pages.size ? jobs.join(" ") : null;
      if (followed === this.followed) return;
      this.followed = followed;
      this.reading?.abort();
      if (followed !== null) this.connect(jobs);
    }, 50);
  }

  async connect(jobs) {
    const reading = (this.reading = new AbortController());
    clearTimeout(this.retrying);
    let again = AGAIN_MS;
    let refusal = "";
    let ended = false;
    try {
      this.wait(reading);
      const query = new URLSearchParams(jobs.map((job) => ["job", job]));
      const answer = await fetch(`/events?${query}`, { signal: reading.signal, cache: "no-store" });
      if (answer.ok) {
        await this.read(answer.body.getReader(), reading);
        ended = true;
      } else if (answer.status === 401) refusal = "Your sign-in has ended. Sign in again to see what changes.";
      else refusal = (await answer.json()).detail;
      again = 1000 * (answer.headers.get("Retry-After") || again / 1000);
    } catch {
      // The connection broke, or nothing came.
    }
    clearTimeout(this.silence);
    if (this.reading !== reading || this.followed === null) return;
    // A stream ends by itself from time to time, and a new one begins.
    if (ended) again = 0;
    else {
      this.channel.postMessage({ lost: true, refusal, at: this.kept.get("")?.at });
      this.pulsed = 0;
    }
    this.retrying = setTimeout(() => this.connect(jobs), again);
  }

  wait(reading) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => reading.abort(), SILENT_MS);
  }

  async read(reader, reading) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      this.wait(reading);
      const blocks = (text + decoder.decode(value, { stream: true })).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) this.take(block);
    }
  }

  take(block) {
    const [, event, data] = block.match(/^event: (\w+)\ndata: (.*)$/) ?? [];
    if (!event) return;
    const told = JSON.parse(data);
    const key = event === "job" ? told.job : "";
    const before = this.kept.get(key);
    const held = before?.parts ?? {};
    this.kept.set(key, { ...told, parts: { ...held, ...told.parts } });
    // A new connection begins with everything: pages get what they do not have yet.
    for (const [target, html] of Object.entries(told.parts)) if (held[target] === html) delete told.parts[target];
    if (event === "pulse") {
      const plain = ({ silence, answering, marks, parts }) => JSON.stringify([silence, answering, marks, parts]);
      const same = before && plain(told) === plain({ ...before, parts: {} });
      if (same && Date.now() - this.pulsed < QUIET_MS) return;
      this.pulsed = Date.now();
      this.channel.postMessage({ pulse: told });
    } else if (told.done || Object.keys(told.parts).length) this.channel.postMessage(told);
  }
}

if (typeof document === "undefined") new LiveStream(self.name);
