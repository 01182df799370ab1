// One WebRTC conversation with the server: speech both ways, and a data channel for captions, state and commands.

import { authorization, call, Refusal } from "./api.js";

const REPORT_MS = 500; // how often the server learns how late its speech sounds
const GATHER_MS = 1500; // candidates that come later than this are not waited for
const CONNECT_MS = 20000;

/** Dispatches "message" (detail: what the server says) and "closed" (detail: whether it failed). */
export class Session extends EventTarget {
  #peer = null;
  #channel = null;
  #sender = null;
  #id = null;
  #microphone = null;
  #reporter = 0;
  #before = null;

  /** The stream of the server's speech, from when it comes in. */
  speech = null;

  get live() {
    return this.#channel?.readyState === "open";
  }

  /** The microphone's stream, null before useMicrophone(). */
  get microphone() {
    return this.#microphone;
  }

  /** Connects; resolves when commands can be sent. */
  async open(iceServers, settings) {
    if (!window.RTCPeerConnection) throw new Refusal("no WebRTC", "webrtc");
    const peer = new RTCPeerConnection({ iceServers, bundlePolicy: "max-bundle" });
    this.#peer = peer;
    this.#channel = peer.createDataChannel("sayline");
    this.#channel.onmessage = ({ data }) => this.dispatchEvent(new CustomEvent("message", { detail: JSON.parse(data) }));
    this.#channel.onclose = () => this.#end(false);
    // Both directions from the start, so that a microphone can join without negotiating again.
    const transceiver = peer.addTransceiver("audio", { direction: "sendrecv" });
    this.#sender = transceiver.sender;
    peer.ontrack = ({ track }) => {
      this.speech = new MediaStream([track]);
      this.dispatchEvent(new CustomEvent("speech"));
    };
    let giveUp;
    const opened = new Promise((resolve, reject) => {
      giveUp = () => reject(new Refusal("no network path in time", "path"));
      this.#channel.onopen = resolve;
      peer.onconnectionstatechange = () => {
        if (["failed", "closed"].includes(peer.connectionState)) {
          reject(new Refusal("the network path failed", "path"));
          this.#end(true);
        }
      };
    });
    opened.catch(() => {}); // told below, or by "closed"
    await peer.setLocalDescription(await peer.createOffer());
    await gathered(peer);
    const { type, sdp } = peer.localDescription;
    const response = await call("rtc/offer", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ type, sdp, settings }),
    });
    const answer = await response.json();
    this.#id = answer.id;
    if (this.#peer === null) throw new Error("closed");
    await peer.setRemoteDescription({ type: answer.type, sdp: answer.sdp });
    setTimeout(giveUp, CONNECT_MS); // a browser without any path to try waits for ever
    await opened;
    this.#reporter = setInterval(() => this.#report(), REPORT_MS);
  }

  /** Sends the microphone's sound from now on. Throws where it may not be used. */
  async useMicrophone() {
    if (!navigator.mediaDevices) throw new Refusal("needs https", "insecure");
    const constraints = { echoCancellation: true, noiseSuppression: true, autoGainControl: true };
    const microphone = await navigator.mediaDevices.getUserMedia({ audio: constraints });
    if (this.#peer === null) { // hung up while the browser asked: nobody would turn it off any more
      for (const track of microphone.getTracks()) track.stop();
      return;
    }
    this.#microphone = microphone;
    await this.#sender?.replaceTrack(this.#microphone.getAudioTracks()[0]);
  }

  set muted(muted) {
    for (const track of this.#microphone?.getAudioTracks() ?? []) track.enabled = !muted;
  }

  send(command) {
    if (this.live) this.#channel.send(JSON.stringify(command));
  }

  close() {
    this.send({ type: "close" });
    // The channel may not be open yet, or the page may be going away: the request ends the session in any case.
    if (this.#id) fetch(`rtc/${this.#id}`, { method: "DELETE", keepalive: true, headers: authorization() }).catch(() => {});
    this.#end(false);
  }

  #end(failed) {
    if (this.#peer === null) return;
    const peer = this.#peer;
    this.#peer = null;
    clearInterval(this.#reporter);
    for (const track of this.#microphone?.getTracks() ?? []) track.stop();
    this.#microphone = null;
    peer.close();
    this.dispatchEvent(new CustomEvent("closed", { detail: failed }));
  }

  /** Tells the server how long its speech takes from it to the ear: network, jitter buffer and device. */
  async #report() {
    if (!this.live) return;
    const now = { jitterS: 0, emitted: 0, playoutS: 0, played: 0, roundTripS: 0 };
    for (const stat of (await this.#peer.getStats()).values()) {
      if (stat.type === "inbound-rtp" && stat.kind === "audio") {
        now.jitterS = stat.jitterBufferDelay ?? 0;
        now.emitted = stat.jitterBufferEmittedCount ?? 0;
      } else if (stat.type === "media-playout") {
        now.playoutS = stat.totalPlayoutDelay ?? 0;
        now.played = stat.totalSamplesCount ?? 0;
      } else if (stat.type === "candidate-pair" && stat.nominated) {
        now.roundTripS = stat.currentRoundTripTime ?? 0;
      }
    }
    const before = this.#before ?? { jitterS: 0, emitted: 0, playoutS: 0, played: 0 };
    this.#before = now;
    const mean = (total, count) => (count > 0 ? total / count : 0);
    const delayS =
      now.roundTripS / 2 +
      mean(now.jitterS - before.jitterS, now.emitted - before.emitted) +
      mean(now.playoutS - before.playoutS, now.played - before.played);
    this.send({ type: "played", delay_s: Math.round(delayS * 1e4) / 1e4 });
  }
}

function gathered(peer) {
  return new Promise((resolve) => {
    const check = () => peer.iceGatheringState === "complete" && resolve();
    peer.addEventListener("icegatheringstatechange", check);
    setTimeout(resolve, GATHER_MS);
    check();
  });
}
