// The last answers of the page: each can be reopened, and undo goes back through them.

import { by, state } from "./state.js";

const MOST_STEPS = 10;

/** Add an answer: { entry, article, words, mark, isAnswer }. Actions that are not answers can be taken back only before they are sent. */
export function addStep(step) {
  state.said.push(step);
  if (state.said.length > MOST_STEPS) state.said.shift();
  showSaid();
}

export function dropStep(step) {
  state.said = state.said.filter((each) => each !== step);
  showSaid();
}

export function stepOf(entry) {
  return state.said.find((step) => step.entry.id === entry.id) ?? null;
}

/** The step that undo opens: the newest one, or the one before the open one. */
export function stepBack() {
  if (state.correcting === null) return state.said.at(-1) ?? null;
  return state.said[state.said.indexOf(state.correcting) - 1] ?? null;
}

let isDue = false;

/** List the steps after the next query has been painted, which has priority. */
export function showSaid() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() =>
    setTimeout(() => {
      isDue = false;
      draw();
    }),
  );
}

/** Draw the list, newest step first; it ends with the earlier answers in the loaded page. */
function draw() {
  const list = by("said");
  list.querySelectorAll("li:has(button)").forEach((each) => each.remove());
  const earlier = [...list.children];
  for (const each of earlier.slice(Math.max(0, MOST_STEPS - state.said.length))) each.remove();
  for (const [place, step] of state.said.entries()) {
    const button = Object.assign(document.createElement("button"), { type: "button", title: `Open ${step.article.dataset.instance} again` });
    button.dataset.place = place;
    const of = Object.assign(document.createElement("span"), { className: "said-of", textContent: step.article.dataset.instance });
    const label = Object.assign(document.createElement("b"), { className: step.mark, textContent: step.words });
    button.append(of, label);
    if (step === state.correcting) button.setAttribute("aria-current", "true");
    const item = document.createElement("li");
    item.append(button);
    list.prepend(item);
  }
  list.scrollLeft = 0;
  by("back").hidden = list.children.length === 0;
}
