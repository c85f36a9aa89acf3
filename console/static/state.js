// The state of the labelling page: its model, the shown query, and the held queries.

export const by = (id) => document.getElementById(id);
const { dataset } = by("labelling");
export const { base, formToken, labeller } = dataset;
export const delayMs = Number(dataset.delay) * 1000;
export const unseenMs = Number(dataset.unseen) * 1000; // earlier presses do not answer a query
export const leaseMs = Number(dataset.lease) * 1000;
export const strict = dataset.strict !== "";
export const ahead = strict ? 0 : Number(dataset.ahead); // number of queries held in advance
export const page = crypto.randomUUID();

export const state = {
  current: null, // the shown article
  upcoming: [], // articles not seen yet
  held: null, // the query set aside while an earlier answer is corrected
  gone: "", // why the previous query disappeared, announced once with the next one
  said: [], // the last answers of this page, newest last
  correcting: null, // the reopened one of these
  paused: false,
  stopped: false,
  seenAt: Date.now(), // time of the last activity
  outbox: null,
  mayLeave: false, // the labeller has confirmed, or is going to sign in: close the page without asking
};

/** The keys of the commands for the shown query, by name; the first of each is the displayed one. */
export function commands() {
  return JSON.parse((state.current ?? by("labelling")).dataset.commands);
}

export function keyOf(command) {
  return commands()[command][0];
}
