// Asks for confirmation of a sign-out while answers are unsent: they are sent only after this labeller signs in again.

const SETTLE_MS = 2000;

/**
 * @param outbox first tries to send all answers
 * @param countLeft returns the number of answers left after that
 * @param onAgreed called before leaving the page
 */
export function askBeforeSignOut(outbox, countLeft, onAgreed = () => null) {
  const form = document.querySelector("form.who");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    await outbox.settle(SETTLE_MS);
    const left = await countLeft();
    const waiting = left === 1 ? "1 answer is not sent yet. It" : `${left} answers are not sent yet. They`;
    const kept = `${left === 1 ? "stays" : "stay"} in this browser, and can be sent only when ${form.dataset.labeller} signs in again`;
    const fate = outbox.isKept ? kept : `${left === 1 ? "is" : "are"} in this page alone, and lost with it`;
    if (left > 0 && !confirm(`${waiting} ${fate}. Sign out all the same?`)) return;
    onAgreed();
    form.submit();
  });
}
