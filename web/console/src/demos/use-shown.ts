import { useEffect, useState } from "preact/hooks";

/** Whether the page can be seen. */
export function useShown(): boolean {
  const [isShown, setShown] = useState(() => !document.hidden);
  useEffect(() => {
    const follow = () => setShown(!document.hidden);
    follow();
    document.addEventListener("visibilitychange", follow);
    return () => document.removeEventListener("visibilitychange", follow);
  }, []);
  return isShown;
}
