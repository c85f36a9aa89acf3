// Shows the query or the reason why there is none, the progress, and announcements.

import { clockReset } from "./clock.js";
import { startGlance } from "./glance.js";
import { showGrade } from "./grade.js";
import { openItem, prepareItem } from "./item.js";
import { by, commands, state } from "./state.js";

export function read(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // from the console's own templates, which escape all other content
  const article = document.adoptNode(holder.content.querySelector("article")); // its pictures start loading now
  for (const each of article.querySelectorAll("img")) each.decode().catch(() => null); // broken pictures are shown as such in their place
  return article;
}

/** Show a query; `seenAt`: time at which it was painted, if it was already visible. */
export function show(article, seenAt) {
  state.current = article;
  state.correcting = null;
  by("idle").hidden = true;
  showGrade(article);
  prepareItem(article);
  showCommandKeys();
  by("stage").replaceChildren(article);
  clockReset(seenAt ?? performance.now());
  startGlance(seenAt);
  openItem(article); // it is laid out after this, so change nothing later
  article.querySelector("h1").focus({ preventScroll: true });
}

/** Update the displayed keys of commands outside the query: they depend on the model. */
function showCommandKeys() {
  const keys = commands();
  for (const each of document.querySelectorAll("kbd[data-command]")) {
    const key = keys[each.dataset.command][0];
    if (each.textContent !== key) each.textContent = key;
  }
}

export function showIdle(why) {
  if (state.paused || state.current !== null) return;
  const idle = by("idle");
  const was = idle.hidden;
  by("stage").replaceChildren();
  by("idle-why").textContent = why;
  idle.hidden = false;
  if (was) idle.querySelector("h1").focus();
}

export function showProgress(progress) {
  if (!progress) return;
  const bar = by("progress").querySelector("progress");
  bar.max = progress.budget || 1;
  bar.value = progress.answered;
  by("progress").querySelector("span").textContent = progress.text;
}

export function announce(text) {
  by("status").textContent = text;
}

/** Show a refused answer until the labeller has read the reason. */
export function showRefused(entry, reason, onDismiss) {
  const line = document.createElement("li");
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Dismiss" });
  button.setAttribute("aria-label", `Dismiss: ${entry.description}`);
  button.addEventListener("click", () => {
    line.remove();
    by("refused").hidden = by("refused").children.length === 0;
    onDismiss();
  });
  line.append(`${entry.description} was not accepted: ${reason} `, button);
  by("refused").append(line);
  by("refused").hidden = false;
}

export function showTrouble(status, count) {
  const away = by("away");
  const { isKept } = state.outbox;
  const kept = count === 1 ? "1 answer is kept" : `${count} answers are kept`;
  const lost = count === 1 ? "1 answer is in this page alone, and lost with it" : `${count} answers are in this page alone, and lost with it`;
  away.replaceChildren();
  if (status === 401 || status === 403) {
    const link = document.createElement("a");
    link.href = status === 401 ? `/sign-in?next=${encodeURIComponent(location.pathname)}` : location.href;
    link.textContent = status === 401 ? "Sign in again" : "Load the page again";
    link.addEventListener("click", () => (state.mayLeave = isKept));
    away.append(link, count ? `: ${isKept ? `${kept} until then` : lost}.` : ".");
  } else {
    const goOn = state.current === null ? "" : "; you may go on";
    if (count === 0) away.textContent = "The server is away. The next query comes when it is back.";
    else if (isKept) away.textContent = `The server is away. ${kept} here, even if you close this page, and sent when it is back${goOn}.`;
    else away.textContent = `The server is away. ${lost}: keep it open until the server is back${goOn}.`;
  }
  away.hidden = false;
}
