// The page of a new model: shows the settings of a learner as soon as it is chosen.

const isChoice = (field) => ["learner.name", "learner.base.name", "strategy.name"].includes(field.name);
let asked = 0;

async function draw() {
  const mine = ++asked;
  const form = document.getElementById("create");
  const fields = new FormData(form);
  fields.set("act", "settings");
  const response = await fetch(form.action, { method: "POST", body: fields }).catch(() => null);
  const drawn = response?.ok && !response.redirected ? await response.text() : null;
  const settings = document.getElementById("settings");
  if (mine !== asked || settings === null) return;
  document.getElementById("settings-hint").hidden = drawn !== null; // instructions for pages without this script
  if (drawn === null) return;
  const focused = document.activeElement?.id;
  settings.innerHTML = drawn; // of our own templates
  if (focused && document.activeElement?.id !== focused) document.getElementById(focused)?.focus();
}

export function drawSettings(field) {
  if (isChoice(field)) draw();
}

/** Whether the value of a field differs from the one in the loaded page. */
export const isChanged = (field) => {
  if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  if (field.type === "radio" || field.type === "checkbox") return field.checked !== field.defaultChecked;
  return "defaultValue" in field && field.type !== "file" && field.value !== field.defaultValue;
};

// Apply what was chosen before this script loaded, or restored by a reload.
if ([...document.getElementById("create").elements].some((field) => isChoice(field) && isChanged(field))) draw();
