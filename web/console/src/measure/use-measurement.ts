import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Transport } from "pushlab-client";
import type { Measurement } from "./finding";
import type { MeasureOptions } from "./options";
import { probe, stepsOf } from "./probe";

/** A measurement of all transports, as far as it has come. */
export interface MeasureState {
  /** What is measured, or was; undefined before the first start. */
  options: MeasureOptions | undefined;
  /** Which transports are done. */
  measurements: readonly Measurement[];
  /** The one that is under way. */
  current: Transport | undefined;
  /** Steps done, and all of them. */
  done: number;
  all: number;
  isStopped: boolean;
  /** Whether the page was in the background meanwhile. */
  wasHidden: boolean;
}

const BEFORE: MeasureState = {
  options: undefined,
  measurements: [],
  current: undefined,
  done: 0,
  all: 1,
  isStopped: false,
  wasHidden: false,
};

/** Measures when told to; a new start, or the end of the component, ends what is under way. */
export function useMeasurement() {
  const [state, setState] = useState(BEFORE);
  const running = useRef<AbortController>(undefined);

  const stop = useCallback(() => running.current?.abort(), []);
  useEffect(() => stop, [stop]);

  const start = useCallback(
    (options: MeasureOptions) => {
      stop();
      const controller = new AbortController();
      running.current = controller;
      measure(options, controller.signal, (change) => {
        if (running.current === controller) setState((now) => ({ ...now, ...change }));
      });
    },
    [stop],
  );
  return { state, start, stop };
}

type Tell = (change: Partial<MeasureState>) => void;

async function measure(options: MeasureOptions, signal: AbortSignal, tell: Tell): Promise<void> {
  const { transports, messages } = options;
  const steps = stepsOf(messages);
  const measurements: Measurement[] = [];
  const hidden = () => document.hidden && tell({ wasHidden: true });
  document.addEventListener("visibilitychange", hidden);
  tell({ ...BEFORE, options, all: transports.length * steps, wasHidden: document.hidden });
  try {
    for (const current of transports) {
      const before = measurements.length * steps;
      tell({ current, done: before });
      const step = (done: number) => tell({ done: before + done });
      measurements.push(await probe(location.origin, current, { messages, step, signal }));
      tell({ measurements: [...measurements], done: before + steps });
    }
  } catch (error) {
    if (!signal.aborted) throw error;
    tell({ isStopped: true });
  } finally {
    document.removeEventListener("visibilitychange", hidden);
    tell({ current: undefined });
  }
}
