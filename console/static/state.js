// What the labelling page knows: where it is, what it shows, and what it holds.

export const by = (id) => document.getElementById(id);
const { dataset } = by("labelling");
export const { base, formToken, labeller } = dataset;
export const delayMs = Number(dataset.delay) * 1000;
export const unseenMs = Number(dataset.unseen) * 1000; // what is pressed sooner is not an answer to a query
export const leaseMs = Number(dataset.lease) * 1000;
export const strict = dataset.strict !== "";
export const ahead = strict ? 0 : Number(dataset.ahead); // queries held before they are wanted
export const page = crypto.randomUUID();

export const state = {
  current: null, // the article that is shown
  upcoming: [], // articles that nobody saw yet
  held: null, // the query that was left to correct an earlier answer
  gone: "", // why the query before is not here any more, said once with the next one
  said: [], // the last answers of this page, the newest last
  correcting: null, // the one of them that is open again
  paused: false,
  stopped: false,
  seenAt: Date.now(), // when somebody was here last
  outbox: null,
  mayLeave: false, // the labeller was asked, or goes to sign in: nothing is asked when the page is closed
};

/** The keys of the commands beside the shown query, by name; the first of each is the one that is shown. */
export function commands() {
  return JSON.parse((state.current ?? by("labelling")).dataset.commands);
}

export function keyOf(command) {
  return commands()[command][0];
}
