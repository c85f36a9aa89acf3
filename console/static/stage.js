// What is seen: the query, why there is none, how far the labelling is, and what happened.

import { clockReset } from "./clock.js";
import { by, state } from "./state.js";

export function read(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html; // made by the console's own templates, which escape all that is not theirs
  return holder.content.querySelector("article");
}

export function show(article) {
  state.current = article;
  state.correcting = false;
  by("idle").hidden = true;
  by("stage").replaceChildren(article);
  clockReset();
  state.shownAt = performance.now();
  article.querySelector("h1").focus({ preventScroll: false });
  scrollTo(0, 0);
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
  by("progress").querySelector("span").textContent =
    `${progress.answered.toLocaleString("en")} of ${progress.budget.toLocaleString("en")} answers`;
}

export function announce(text) {
  by("status").textContent = text;
}

export function showTrouble(status, count) {
  const away = by("away");
  const kept = count === 1 ? "1 answer is kept" : `${count} answers are kept`;
  away.replaceChildren();
  if (status === 401 || status === 403) {
    const link = document.createElement("a");
    link.href = status === 401 ? `/sign-in?next=${encodeURIComponent(location.pathname)}` : location.href;
    link.textContent = status === 401 ? "Sign in again" : "Load the page again";
    away.append(link, count ? `: ${kept} until then.` : ".");
  } else {
    away.textContent = count
      ? `The server is away. ${kept} here and sent when it is back; you may go on.`
      : "The server is away. The next query comes when it is back.";
  }
  away.hidden = false;
}
