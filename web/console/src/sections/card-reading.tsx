/** What the words and drawings of a card mean. */
export function CardReading() {
  return (
    <details class="card-reading">
      <summary>How to read it</summary>
      <p>
        Each option stands beside the best of its quantity: 4× is four times the cost or the time,
        or a quarter of the rate. Bars begin at 1× and are logarithmic; all have the same scale, and
        a bar longer than its track is cut off and has an arrow. The line over a bar is the interval
        of its factor. The stripe behind it is the margin within which differences do not matter.
        All conclusions of the card hold together with 95 % confidence.
      </p>
      <dl class="reasons">
        <div>
          <dt>★ best</dt>
          <dd>every other option was shown to be worse</dd>
        </div>
        <div>
          <dt>≈ equivalent</dt>
          <dd>as good as the best, within the margin</dd>
        </div>
        <div>
          <dt>✗ at least 2×</dt>
          <dd>
            shown to be worse than the best, by that factor or more; bold where it seems to be twice
            as bad, and quantities with such a factor come first
          </dd>
        </div>
        <div>
          <dt>? undecided</dt>
          <dd>it may be the best or behind; more runs would tell. Its bar is hatched</dd>
        </div>
        <div>
          <dt>– too few blocks</dt>
          <dd>
            fewer than three starts of the server had a figure, so nothing is concluded. Its bar is
            an outline
          </dd>
        </div>
        <div>
          <dt>yes, no</dt>
          <dd>where a quantity only says whether it works: whether messages arrive</dd>
        </div>
        <div>
          <dt>failed</dt>
          <dd>
            no run succeeded, so it has no figure and is not chosen where the quantity matters
          </dd>
        </div>
        <div>
          <dt>lower bound, ≥, ≤</dt>
          <dd>
            the load generator reached its limit before the server, so the rate is that or more;
            factors that follow from it are bounds too
          </dd>
        </div>
      </dl>
    </details>
  );
}
