// The words of the page, in English and Chinese; elements say which word they show by data-i18n attributes.

const WORDS = {
  en: {
    skip: "Skip to the conversation",
    title: "Sayline: speech while the model is still writing",
    sections: "Sections",
    tabTalk: "Talk",
    tabPlayground: "Playground",
    tabAdmin: "Admin",
    key: "API key",
    themeAuto: "Colours: as the system",
    themeLight: "Colours: light",
    themeDark: "Colours: dark",
    conversation: "Conversation",
    welcome: "Ask something. The answer is spoken while it is being written.",
    welcomeHint: "Push the button and talk, or type. You can interrupt at any time.",
    examples: ["Where is my order 482913?", "How do I return something?", "When are you open?"],
    you: "You",
    talk: "Talk",
    mute: "Mute the microphone",
    unmute: "Unmute the microphone",
    questionLabel: "Your message",
    questionPlaceholder: "Type a message …",
    send: "Send",
    interrupt: "Interrupt",
    hangUp: "End",
    keys: "Esc interrupts. Enter sends.",
    sideLabel: "Voice and latency",
    voiceTitle: "Voice",
    voice: "Voice",
    speechLanguage: "Language",
    auto: "Automatic",
    speed: "Speed",
    timelineTitle: "This turn",
    headline: "from the first token to audible speech",
    barsLabel: "Latency of each sentence",
    waitingForModel: "Waiting for the model",
    stage1: "Sentence written",
    stage2: "Planned",
    stage3: "First frame",
    stage4: "First sample",
    stage5: "Audible",
    stage6: "At your ear",
    stageWaits: "Waits its turn",
    ahead: "{n} ms ahead",
    ms: "{n} ms",
    stateReady: "Ready",
    stateConnecting: "Connecting",
    stateListening: "Listening",
    statePreparing: "Getting ready to listen",
    stateHearing: "Hearing you",
    stateIdle: "Connected, microphone off",
    stateDeaf: "Connected, but speech is not recognised here",
    stateThinking: "Thinking",
    stateSpeaking: "Speaking",
    stateHeld: "Paused while you speak",
    stateFailed: "Disconnected",
    youSaid: "You said: {text}",
    cut: "Interrupted. Words struck out were not heard.",
    usingTool: "Uses {name} …",
    noMicrophone: "The microphone cannot be used: {why}. You can type instead.",
    noRecognizer: "This server cannot recognise speech ({why}). You can type instead.",
    peerFailed: "The connection was lost. Your next message makes a new one.",
    connectFailed: "No connection: {why}.",
    whyUnreachable: "the server does not answer; see whether it runs, then try again",
    whyBusy: "the server has its hands full; try again in a moment",
    whyDraining: "the server is shutting down; try again in a minute",
    whyNoModel: "the server has no language model to answer with; the Playground speaks texts",
    whyKey: "the server did not take the API key; push “API key” and give another one",
    whyPath: "no network path leads to the server for sound; a firewall may be in the way, another network or a TURN server helps",
    whyNoWebrtc: "this browser has no WebRTC; use a current Chrome, Edge, Firefox or Safari",
    whyDenied: "the browser does not allow it; allow it beside the page’s address, then push the button again",
    whyNoDevice: "there is none; plug one in, then push the button again",
    whyInUse: "another program uses it; close that, then push the button again",
    whyInsecure: "browsers allow it on https and localhost only",
    playTitle: "Speech from text",
    playIntro: "Any OpenAI client can do this: point its base URL at this server.",
    playText: "Text",
    playExample: "Your order left our warehouse at 7:45 this morning. It arrives tomorrow, and shipping is free above $50.",
    format: "Format",
    play: "Speak",
    stop: "Stop",
    download: "Download",
    firstByte: "First byte",
    allBytes: "Complete",
    size: "Size",
    duration: "Speech",
    playAudio: "The speech that was made",
    sameByCurl: "The same by command line",
    adminTitle: "Live streams",
    latencyTitle: "Latency of recent requests",
    streamsTitle: "Streams now",
    measure: "Measure",
    count: "Requests",
    stream: "Stream",
    kind: "Kind",
    age: "Age",
    firstSound: "First sound",
    first_sound: "First token to first sound",
    first_audible: "First token to audible speech",
    end_to_end: "Request to audible speech",
    spoken: "Spoken",
    underruns: "Underruns",
    none: "Nothing speaks at the moment.",
    noneYet: "No requests yet.",
    live: "Live streams",
    free: "Free places",
    score: "Health score",
    keyTitle: "API key",
    keyHint: "This server asks for a key. It is kept until this tab is closed, and nowhere else.",
    keySave: "Use it",
    cancel: "Cancel",
  },
  zh: {
    skip: "跳到对话",
    title: "Sayline：模型边写，语音边说",
    sections: "栏目",
    tabTalk: "对话",
    tabPlayground: "试用",
    tabAdmin: "管理",
    key: "API 密钥",
    themeAuto: "配色：跟随系统",
    themeLight: "配色：浅色",
    themeDark: "配色：深色",
    conversation: "对话",
    welcome: "请提问。回答还在书写，声音已经响起。",
    welcomeHint: "点按钮说话，或者打字。随时可以打断。",
    examples: ["我的订单482913到哪了？", "怎么退货？", "你们几点营业？"],
    you: "您",
    talk: "说话",
    mute: "关闭麦克风",
    unmute: "打开麦克风",
    questionLabel: "您的消息",
    questionPlaceholder: "输入消息……",
    send: "发送",
    interrupt: "打断",
    hangUp: "结束",
    keys: "Esc 打断，Enter 发送。",
    sideLabel: "声音与延迟",
    voiceTitle: "声音",
    voice: "声音",
    speechLanguage: "语言",
    auto: "自动",
    speed: "语速",
    timelineTitle: "本轮延迟",
    headline: "从第一个词元到听得见的声音",
    barsLabel: "每句话的延迟",
    waitingForModel: "等待模型",
    stage1: "整句写完",
    stage2: "完成规划",
    stage3: "首帧",
    stage4: "首个采样",
    stage5: "可闻",
    stage6: "到达耳边",
    stageWaits: "等待轮到",
    ahead: "提前 {n} 毫秒",
    ms: "{n} 毫秒",
    stateReady: "就绪",
    stateConnecting: "连接中",
    stateListening: "正在听",
    statePreparing: "正在准备听",
    stateHearing: "听到您在说话",
    stateIdle: "已连接，麦克风关闭",
    stateDeaf: "已连接，但此服务器不识别语音",
    stateThinking: "思考中",
    stateSpeaking: "正在说",
    stateHeld: "您说话时暂停",
    stateFailed: "已断开",
    youSaid: "您说：{text}",
    cut: "已打断。划掉的字没有播出。",
    usingTool: "正在使用 {name}……",
    noMicrophone: "无法使用麦克风：{why}。您可以打字。",
    noRecognizer: "服务器无法识别语音（{why}）。您可以打字。",
    peerFailed: "连接已断开。发送下一条消息时会重新连接。",
    connectFailed: "无法连接：{why}。",
    whyUnreachable: "服务器没有响应，请确认它在运行，然后重试",
    whyBusy: "服务器正忙，请稍后再试",
    whyDraining: "服务器正在关闭，请过一会儿再试",
    whyNoModel: "服务器没有配置语言模型，您可以在“试用”里朗读文字",
    whyKey: "服务器不接受这个 API 密钥，请点“API 密钥”换一个",
    whyPath: "声音无法到达服务器，可能被防火墙拦住，请换个网络或配置 TURN 服务器",
    whyNoWebrtc: "这个浏览器不支持 WebRTC，请使用新版 Chrome、Edge、Firefox 或 Safari",
    whyDenied: "浏览器没有授权，请在地址栏旁边允许，然后再点按钮",
    whyNoDevice: "没有找到麦克风，请接上一个，然后再点按钮",
    whyInUse: "麦克风正被别的程序占用，请关掉那个程序，然后再点按钮",
    whyInsecure: "浏览器只允许 https 和 localhost 使用",
    playTitle: "文字转语音",
    playIntro: "任何 OpenAI 客户端都能用：把 base URL 指向本服务器。",
    playText: "文字",
    playExample: "您的订单今天早上7:45已经出库，预计明天送达。满99元包邮。",
    format: "格式",
    play: "朗读",
    stop: "停止",
    download: "下载",
    firstByte: "首字节",
    allBytes: "全部完成",
    size: "大小",
    duration: "语音时长",
    playAudio: "生成的语音",
    sameByCurl: "命令行写法",
    adminTitle: "实时语音流",
    latencyTitle: "最近请求的延迟",
    streamsTitle: "当前语音流",
    measure: "指标",
    count: "请求数",
    stream: "编号",
    kind: "类型",
    age: "已持续",
    firstSound: "首声",
    first_sound: "首词元到首声",
    first_audible: "首词元到可闻",
    end_to_end: "请求到可闻",
    spoken: "已播",
    underruns: "断音",
    none: "目前没有语音流。",
    noneYet: "还没有请求。",
    live: "实时语音流",
    free: "空位",
    score: "健康分",
    keyTitle: "API 密钥",
    keyHint: "服务器需要密钥。密钥只保存到本标签页关闭为止。",
    keySave: "使用",
    cancel: "取消",
  },
};

/** What stands for the codes of errors that users meet: of the server's, and names that browsers give. */
const REASONS = {
  unreachable: "whyUnreachable",
  overloaded: "whyBusy",
  too_many_open: "whyBusy",
  rate_limit_exceeded: "whyBusy",
  draining: "whyDraining",
  no_model: "whyNoModel",
  invalid_api_key: "whyKey",
  path: "whyPath",
  webrtc: "whyNoWebrtc",
  insecure: "whyInsecure",
  NotAllowedError: "whyDenied",
  NotFoundError: "whyNoDevice",
  NotReadableError: "whyInUse",
};

const listeners = [];
let language = stored() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");

export function currentLanguage() {
  return language;
}

/** The word for a key, its {names} filled in. */
export function word(key, values = {}) {
  const text = WORDS[language][key];
  return typeof text === "string" ? text.replace(/\{(\w+)\}/g, (_, name) => String(values[name])) : text;
}

/** Why something failed and what to do, in the reader's language where the page knows; else as the error says it. */
export function reason(error) {
  const key = REASONS[error.code] ?? REASONS[error.name];
  return key ? word(key) : error.message.replace(/[.。]$/, "");
}

/** A count of milliseconds as the page shows it. */
export function milliseconds(seconds, key = "ms") {
  return word(key, { n: Math.round(seconds * 1000).toLocaleString(language) });
}

/** Calls back when the language changes. */
export function onLanguage(listener) {
  listeners.push(listener);
}

export function setLanguage(next) {
  language = next;
  try {
    localStorage.setItem("sayline-language", next);
  } catch { /* storage may be forbidden; the choice then lasts as long as the page */ }
  show();
}

/** Puts the words into the page. */
export function show(root = document) {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const element of root.querySelectorAll("[data-i18n]")) element.textContent = word(element.dataset.i18n);
  for (const element of root.querySelectorAll("[data-i18n-label]")) element.setAttribute("aria-label", word(element.dataset.i18nLabel));
  for (const element of root.querySelectorAll("[data-i18n-placeholder]")) element.placeholder = word(element.dataset.i18nPlaceholder);
  for (const listener of listeners) listener();
}

function stored() {
  try {
    const value = localStorage.getItem("sayline-language");
    return value in WORDS ? value : null;
  } catch {
    return null;
  }
}
