// A labeller's answer: it waits in the outbox, where it can be taken back; later it is corrected.

import { tookSeconds } from "./clock.js";
import { Outbox } from "./outbox.js";
import { closePanels } from "./panels.js";
import { announce, show, showIdle, showTrouble } from "./stage.js";
import { base, by, delayMs, formToken, labeller, state, strict } from "./state.js";
import { fetchNext, refreshUnseen } from "./supply.js";

state.outbox = new Outbox(`quercus-outbox:${labeller}:${base}`, formToken, {
  onTaken: taken,
  onRefused(entry, reason) {
    const line = document.createElement("li");
    line.textContent = `${entry.description} was not taken: ${reason}`;
    by("refused").append(line);
    by("refused").hidden = false;
    fetchNext();
  },
  onTrouble: showTrouble,
  onWell() {
    by("away").hidden = true;
  },
});

const WORDS = { refuse: "Refused", skip: "Skipped", postpone: "Postponed", undo: "Taken back" };

function wordsOf(label) {
  if (typeof label === "string") return label;
  if (Array.isArray(label)) return label.join(" or ");
  return Object.entries(label)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
}

export function sendAnswer(act, label = null) {
  const article = state.current;
  const comment = article.querySelector(".comment-text").value.trim();
  const body = { query: article.dataset.name, lease_token: article.dataset.token, shown: article.dataset.shown, comment };
  if (label !== null) body.label = label;
  if (!state.correcting) body.took_s = tookSeconds();
  const doing = state.correcting ? (act === "refuse" ? "undo" : "correct") : act;
  const description = `${label === null ? WORDS[doing] : wordsOf(label)}, ${article.dataset.instance}`;
  state.outbox.flush(); // the answer before this one is final
  const waits = state.correcting ? 0 : delayMs;
  const entry = state.outbox.add(`${base}/${doing}`, body, description, waits);
  if (doing === "skip" || doing === "postpone") state.latest = { entry, article, undoable: true };
  else state.latest = { entry, article, label: doing === "undo" ? null : label, correctable: doing !== "undo" };
  by("back").hidden = false;
  closePanels(article);
  const seconds = (waits / 1000).toLocaleString("en");
  announce(state.correcting ? `${description}. Sent as a correction.` : `${description}. Sending in ${seconds} s; b takes it back at no cost.`);
  state.current = null;
  if (state.held !== null) {
    state.upcoming.unshift(state.held);
    state.held = null;
  }
  state.correcting = false;
  if (state.upcoming.length > 0 && !strict) show(state.upcoming.shift());
  else {
    by("stage").replaceChildren();
    if (strict) state.outbox.flush();
    showIdle("The next query is on its way.");
  }
  fetchNext();
}

function taken(entry, report) {
  if (report.conflict) announce(`${entry.description}: kept. It contradicts the earlier evidence, and replaces it.`);
  else if (report.wants_more) announce(`${entry.description}: kept. Others are asked about it too.`);
  else if (state.latest !== null && state.latest.entry.id === entry.id) announce(`${entry.description}: kept.`);
  if (state.latest !== null && state.latest.entry.id === entry.id && state.latest.undoable) {
    state.latest = null;
    by("back").hidden = true;
  }
  if (state.current === null) fetchNext();
  else refreshUnseen();
}

export function back() {
  if (state.latest === null || state.correcting) return announce("There is no earlier answer in this session.");
  const { entry, article } = state.latest;
  const note = article.querySelector(".earlier");
  if (state.outbox.takeBack(entry.id)) {
    if (state.current !== null) state.upcoming.unshift(state.current);
    state.latest = null;
    by("back").hidden = true;
    show(article);
    return announce(`Taken back, and never sent: ${entry.description}.`);
  }
  if (!state.latest.correctable) return announce("That cannot be taken back any more.");
  if (state.current !== null) state.held = state.current;
  show(article);
  state.correcting = true;
  note.textContent = `You said: ${entry.description}. Give another answer, or r to take it back; Escape leaves it as it is.`;
  note.hidden = false;
  announce(note.textContent);
}

export function leaveCorrection() {
  state.current.querySelector(".earlier").hidden = true;
  state.current = null;
  state.correcting = false;
  const next = state.held ?? state.upcoming.shift() ?? null;
  state.held = null;
  if (next !== null) show(next);
  else showIdle("The next query is on its way.");
  fetchNext();
}
