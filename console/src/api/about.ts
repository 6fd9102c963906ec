/** What `sluice console` tells the page about itself: the one answer that is not the API's. */
export interface About {
  api: string;
  namespace: string | null;
  stage: string | null;
  account: string | null;
  region: string | null;
  version: string;
  read_only: boolean;
}
