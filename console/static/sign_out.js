// Who signs out while answers wait is asked: they are sent only after this labeller signs in again.

/**
 * @param countLeft tries to send all, and returns how many answers are left
 * @param onAgreed called before the page goes
 */
export function askBeforeSignOut(countLeft, onAgreed = () => null) {
  const form = document.querySelector("form.who");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const left = await countLeft();
    const waiting = left === 1 ? "1 answer is not sent yet. It stays" : `${left} answers are not sent yet. They stay`;
    const question = `${waiting} in this browser, and can be sent only when ${form.dataset.labeller} signs in again. Sign out all the same?`;
    if (left > 0 && !confirm(question)) return;
    onAgreed();
    form.submit();
  });
}
