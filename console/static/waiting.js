// On all pages except the labelling page: sends the labeller's unsent answers, and reports those that remain in this browser.

import { Outbox } from "./outbox.js";
import { askBeforeSignOut } from "./sign_out.js";
import { readUnsent } from "./unsent.js";

const line = document.getElementById("unsent");
const form = document.querySelector("form.who");

function say(...content) {
  line.replaceChildren(...content);
  line.hidden = content.length === 0;
}

function answers(count, one, several) {
  return count === 1 ? `1 answer ${one}` : `${count} answers ${several}`;
}

async function unsentOf(labeller) {
  const waiting = (await readUnsent()).filter((each) => !each.refused);
  return waiting.filter((each) => labeller === null || each.labeller === labeller);
}

async function sayWhoseWait() {
  const waiting = await unsentOf(null);
  if (waiting.length === 0) return;
  const names = [...new Set(waiting.map((each) => each.labeller))].join(", ");
  say(`${answers(waiting.length, "waits", "wait")} in this browser, of ${names}. The answers of a labeller are sent when that labeller signs in again.`);
}

async function sendOwn() {
  const { labeller } = form.dataset;
  const outbox = new Outbox(labeller, form.elements.form_token.value, {
    onTaken: () => say(),
    onRefused: (_, reason) => say(`An answer was not accepted: ${reason.replace(/\.$/, "")}. The page Label lists it.`),
    onTrouble: (_, count) => say(`${answers(count, "waits", "wait")} in this browser to be sent.`),
    onWell: () => say(),
    onUnkept: () => null,
  });
  askBeforeSignOut(outbox, async () => (await unsentOf(labeller)).length);
  await outbox.start();
}

await (form === null ? sayWhoseWait() : sendOwn());
