// Ask the server, and follow its stream of events. With a token, which EventSource could not send.

const ask = document.getElementById("ask"), field = document.getElementById("token");
let asking = null;

export class ApiError extends Error {
  constructor(status, error, detail) {
    super(detail);
    Object.assign(this, { status, error });
  }
}

/** Return the response to a request, which asks for a token until the server takes it. */
async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem("token"), headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    const response = await fetch(path, { ...options, headers, cache: "no-store" });
    if (response.status !== 401) return response;
    await newToken(token);
  }
}

/** Ask for a token in place of a refused one, once for all requests that wait for it. */
function newToken(refused) {
  if (sessionStorage.getItem("token") !== refused) return Promise.resolve();
  asking ??= new Promise((resolve) => {
    field.value = "";
    ask.showModal();
    ask.addEventListener("close", () => {
      if (field.value) sessionStorage.setItem("token", field.value.trim());
      asking = null;
      resolve();
    }, { once: true });
  });
  return asking;
}

/** Return what a path answers, in JSON. */
export async function get(path, options) {
  const response = await request(path, options), answer = await response.json();
  if (!response.ok) throw new ApiError(response.status, answer.error, answer.detail);
  return answer;
}

/**
 * Follow the stream of events until `signal` aborts, and go on after the last event when a connection ends.
 * `take` gets lists of events, `state` whether the stream is connected, `missed` how many events were lost.
 */
export async function follow(query, recent, { signal, take, state, missed }) {
  let last = null, pause = 500;
  while (!signal.aborted) {
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const response = await request(`/v1/events?${query}&recent=${last === null ? recent : 0}`, { headers, signal });
      if (!response.ok) throw new Error(`status ${response.status}`);
      state(true);
      pause = 500;
      for await (const messages of read(response.body)) {
        const events = [];
        for (const message of messages) {
          if (message.type === "missed") missed(JSON.parse(message.data).events);
          else events.push(JSON.parse(message.data));
          last = message.id ?? last;
        }
        if (events.length) take(events);
      }
    } catch (error) {
      if (signal.aborted) return;
      console.info("the stream of events ended:", error.message);
    }
    state(false);
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(2 * pause, 8000);
  }
}

/** Yield the messages of a body in the form of server-sent events, as many at a time as have arrived. */
async function* read(body) {
  const decoder = new TextDecoder(), reader = body.getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = blocks.pop();
    const messages = blocks.map(message).filter((each) => each.data !== null);
    if (messages.length) yield messages;
  }
}

function message(block) {
  const found = { id: null, type: "message", data: null };
  for (const line of block.split("\n")) {
    const [name, ...value] = line.split(": ");
    if (name === "id") found.id = value.join(": ");
    else if (name === "event") found.type = value.join(": ");
    else if (name === "data") found.data = value.join(": ");
  }
  return found;
}
